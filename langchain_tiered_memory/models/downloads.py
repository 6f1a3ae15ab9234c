"""Fetches the files that search by meaning and exact counts need, and checks each against its known SHA-256.

Nothing here runs unasked: `tiered-memory setup` and `TIERED_MEMORY_DOWNLOAD=1` are the two ways to ask. What came is
checked before it gets its name, so a broken download leaves nothing behind that could be taken for the file.
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
"""Told after each piece: bytes so far, and bytes in all where the server says so."""

_TIMEOUT = (10.0, 30.0, 30.0, 30.0)
"""Seconds to connect, read, write and wait for a connection after which a download is given up."""
_PIECE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file to fetch."""

    name: str
    """For people."""
    url: str
    sha256: str
    """Of what comes over the network."""
    target: Path
    """The file it becomes, or for an archive the folder that its files go to."""
    members: tuple[str, ...] = ()
    """For a tar archive: the files to take out of it, by their last name; every other is left alone."""
    about_bytes: int
    """For the question whether to fetch it."""


def fetch(download: Download, on_bytes: OnBytes = lambda _done, _all: None) -> None:
    """Fetch, check, and put in place.

    Raises:
        SettingsError: when it cannot be reached, written, or is not what it should be; nothing was put in place.
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
