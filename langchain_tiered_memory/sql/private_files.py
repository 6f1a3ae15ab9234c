"""Files and folders that this package makes are for their owner alone, unless a setting says otherwise.

A mode is set on the open descriptor before anything is written, so that no moment and no umask leaves a file open to
others. What was there before keeps the mode that its owner gave it. Windows has no such modes: nothing is done there.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PRIVATE = 0o600
"""Read and written by the owner, and by nobody else."""
HAS_MODES = sys.platform != "win32"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def folder_mode(file_mode: int) -> int:
    """A folder's mode beside a file's: whoever may read its files may enter it."""
    return file_mode | (file_mode & 0o444) >> 2


def create_file(path: Path, mode: int) -> bool:
    """Make an empty file with this mode, whatever the umask. Returns `False` where there is something already.

    Raises:
        OSError: when it cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode & PRIVATE)
    except FileExistsError:
        return False
    try:
        if HAS_MODES:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    return True


def create_folder(path: Path, mode: int) -> None:
    """Make a folder, and those above it that are missing, for whoever may read files of this mode.

    Raises:
        OSError: when it cannot be made.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue  # somebody else made it just now
        if HAS_MODES:
            folder.chmod(folder_mode(mode))


def close_to_others(folder: Path, mode: int) -> None:
    """Give what others wrote into a folder of ours its mode. A folder that is open to more people is left as it is."""
    if not HAS_MODES or stat.S_IMODE(folder.stat().st_mode) & ~folder_mode(mode):
        return
    for place in folder.rglob("*"):
        wanted = folder_mode(mode) if place.is_dir() else mode
        if stat.S_IMODE(place.lstat().st_mode) != wanted and not place.is_symlink():
            place.chmod(wanted)


def too_open(places: Iterable[Path], mode: int) -> list[tuple[Path, str, str]]:
    """Of these, those that are open to more people than the setting has it, each with its mode and the one wanted."""
    found: list[tuple[Path, str, str]] = []
    for place in places if HAS_MODES else ():
        try:
            has = stat.S_IMODE(place.stat().st_mode)
        except OSError:
            continue
        allowed = folder_mode(mode) if place.is_dir() else mode
        if has & _OTHERS & ~allowed:
            found.append((place, f"{has:04o}", f"{allowed:o}"))
    return found
