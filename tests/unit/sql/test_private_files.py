"""Files that others wrote into a folder of ours get its mode, and nothing beside it does."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from langchain_tiered_memory.sql.private_files import close_to_others

if TYPE_CHECKING:
    from pathlib import Path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_others_wrote_is_closed_and_what_a_link_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    ours, beside = tmp_path / "ours", tmp_path / "beside"
    for folder in (ours / "inner", beside):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "file").write_text("words")
        (folder / "file").chmod(0o644)
    ours.chmod(0o700)
    (ours / "link").symlink_to(beside / "file")
    close_to_others(ours, 0o600)
    assert (mode_of(ours / "inner"), mode_of(ours / "inner" / "file")) == (0o700, 0o600)
    assert (mode_of(beside), mode_of(beside / "file")) == (0o755, 0o644)


def test_a_folder_that_is_open_to_more_people_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("words")
    (tmp_path / "file").chmod(0o644)
    tmp_path.chmod(0o755)
    close_to_others(tmp_path, 0o600)
    assert mode_of(tmp_path / "file") == 0o644
