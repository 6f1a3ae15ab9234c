"""Builders of kept files, of rules for them, and a model of the tiers that a test compares the store with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.runs.files.disk import seen
from langchain_tiered_memory.runs.files.file_rows import densely
from langchain_tiered_memory.settings import TierRule, TierSettings

if TYPE_CHECKING:
    from langchain_tiered_memory.runs.files.policy import Tiers
    from langchain_tiered_memory.runs.files.store import SeenFile
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef


def small_rules(hot: int = 3, warm: int = 4, **changes: Any) -> TierSettings:
    """Rules with small tiers, so that a few files fill them."""
    values: dict[str, Any] = {
        "hot": TierRule(files=hot, seconds=600.0, files_after_cleanup=hot // 2),
        "warm": TierRule(files=warm, seconds=3600.0, files_after_cleanup=warm // 2),
    }
    return TierSettings(**(values | changes))


def seen_file(path: str, content: bytes | str | None = None) -> SeenFile:
    """A file as somebody gives it; without a content one that tells its path."""
    said = content if content is not None else f"# {path}\n" * 20
    return seen(path, said.encode() if isinstance(said, str) else said, modified_ns=None)


def content_of(store: SqlStore, ref: SessionRef, path: str) -> bytes | None:
    """A kept content."""
    return store.kept_files.content(ref, path)


def places(store: SqlStore, ref: SessionRef) -> dict[str, str]:
    """The tier of each kept file."""
    return {file.path: file.tier for file in store.kept_files.files(ref)}


def within_limits(tiers: Tiers, rules: TierSettings) -> bool:
    """Whether hot and warm hold no more than they may."""
    return tiers.count("hot") <= rules.hot.files and tiers.count("warm") <= rules.warm.files


HEADING = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(8))
"""What many files have in common, and none twice: that is what a dictionary is for."""


def keep_in_all_tiers(store: SqlStore, ref: SessionRef) -> None:
    """Two hot files, of which one is pinned, 30 warm and 8 cold ones; contents below hot need a dictionary."""
    rules = TierSettings(hot=TierRule(files=2, seconds=1, files_after_cleanup=1))
    for number in range(40):
        said = f"# {HEADING}\nkept_{number} = {number}\n"
        store.kept_files.open(ref, seen_file(f"f{number}.py", said), now=1.0, rules=rules, pinned=number == 39)
    times = {"collected_at": 1.0, "optimised_at": 1.0, "crowded_at": 1.0}
    store.kept_files.change(ref, lambda tiers: tiers, rules=rules, times=times)
    better, dictionary = densely(store.kept_files.loosely_packed(ref, most=99), most_dictionary_bytes=1024)
    assert dictionary is not None
    store.kept_files.write_packed(ref, better, dictionary)
