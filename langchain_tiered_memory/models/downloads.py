"""Downloads the files for search by meaning and exact counts, and checks each against its known SHA-256.

Nothing here runs unasked: `tiered-memory setup` and `TIERED_MEMORY_DOWNLOAD=1` are the two ways to ask. A download is
checked before it gets its name, so a broken one leaves nothing behind that could be taken for the file.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from langchain_tiered_memory.errors import SettingsError

OnBytes: TypeAlias = Callable[[int, int | None], None]
"""Called after each piece with the bytes so far, and the total if the server tells it."""

_TIMEOUT = (10.0, 30.0, 30.0, 30.0)
"""Seconds for connecting, reading, writing or waiting for a connection, after which a download fails."""
_PIECE_BYTES = 1 << 18


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


def fetch(download: Download, on_bytes: OnBytes = lambda _done, _all: None) -> None:
    """Download a file, check it, and put it in place.

    Raises:
        SettingsError: if it cannot be reached or written, or has the wrong content. Nothing was put in place.
    """
    import httpx  # noqa: PLC0415 - slow to import, and hardly ever needed

    folder = download.target if download.members else download.target.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as part:
            came = Path(part) / "came"
            digest = _stream(download.url, came, on_bytes)
            if digest != download.sha256:
                msg = (
                    f"{download.name}: the download from {download.url} is not the expected file (its SHA-256 differs)"
                )
                raise SettingsError(msg)
            if download.members:
                _unpack(came, download.members, Path(part))
                for name in download.members:
                    (Path(part) / name).replace(folder / name)
            else:
                came.replace(download.target)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"{download.name} could not be downloaded from {download.url}: {type(error).__name__}: {error}"
        raise SettingsError(msg) from error
    except (OSError, tarfile.TarError) as error:
        msg = f"{download.name} could not be put into {folder}: {error}"
        raise SettingsError(msg) from error


def _stream(url: str, into: Path, on_bytes: OnBytes) -> str:
    import httpx  # noqa: PLC0415 - as above

    seen = hashlib.sha256()
    done = 0
    with httpx.stream("GET", url, timeout=_TIMEOUT, follow_redirects=True) as answer, into.open("wb") as file:
        answer.raise_for_status()
        length = answer.headers.get("content-length", "")
        whole = int(length) if length.isdigit() else None
        for piece in answer.iter_bytes(_PIECE_BYTES):
            file.write(piece)
            seen.update(piece)
            done += len(piece)
            on_bytes(done, whole)
    return seen.hexdigest()


def _unpack(archive: Path, members: tuple[str, ...], into: Path) -> None:
    with tarfile.open(archive) as opened:
        found = {Path(one.name).name: one for one in opened if one.isfile()}
        missing = sorted(set(members) - set(found))
        if missing:
            msg = f"the archive has no {', '.join(missing)}"
            raise tarfile.TarError(msg)
        for name in members:
            source = opened.extractfile(found[name])
            if source is not None:
                with source, (into / name).open("wb") as file:
                    shutil.copyfileobj(source, file)
