"""Downloads the files for search by meaning and exact counts, and checks each against its known SHA-256.

Nothing here runs unasked: `tiered-memory setup` and `TIERED_MEMORY_DOWNLOAD=1` are the two ways to ask. A download is
checked before it gets its name, so a broken one leaves nothing behind that could be taken for the file.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from langchain_tiered_memory.errors import SettingsError

_TIMEOUT = (10.0, 30.0, 30.0, 30.0)
"""Seconds for connecting, reading, writing or waiting for a connection, after which a download fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file to download."""

    name: str
    """A name for people."""
    url: str
    sha256: str
    """SHA-256 of what comes over the network."""
    target: Path
    """The file that it becomes, or for an archive the folder for its files."""
    members: tuple[str, ...] = ()
    """For a tar archive: the names of the files to extract. All others are ignored."""
    about_bytes: int
    """Its size, for the question whether to download it."""


def fetch(download: Download) -> None:
    """Download a file, check it, and put it in place.

    Raises:
        SettingsError: if it cannot be reached or written, or has the wrong content. Nothing was put in place.
    """
    import httpx  # noqa: PLC0415 - slow to import, and hardly ever needed

    try:
        answer = httpx.get(download.url, timeout=_TIMEOUT, follow_redirects=True).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"{download.name} could not be downloaded from {download.url}: {type(error).__name__}: {error}"
        raise SettingsError(msg) from error
    if hashlib.sha256(answer.content).hexdigest() != download.sha256:
        msg = f"{download.name}: the download from {download.url} is not the expected file (its SHA-256 differs)"
        raise SettingsError(msg)
    try:
        if not download.members:
            put(answer.content, download.target)
            return
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
            found = {Path(one.name).name: archive.extractfile(one) for one in archive if one.isfile()}
            for name in download.members:
                put(found[name].read(), download.target / name)  # type: ignore[union-attr] # of a file it is not `None`
    except OSError as error:
        msg = f"{download.name} could not be put into {download.target}: {error}"
        raise SettingsError(msg) from error


def put(content: bytes, path: Path) -> None:
    """Write a file that gets its name when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        part.write_bytes(content)
        part.replace(path)
