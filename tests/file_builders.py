"""Builders of kept files, of rules for them, and a model of the tiers that a test compares the store with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import zstandard
from sqlalchemy import insert, select, update

from langchain_tiered_memory.runs.files.disk import seen
from langchain_tiered_memory.runs.files.file_rows import checksum_of, read_content
from langchain_tiered_memory.settings import TierRule, TierSettings
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries

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


def pack_with_dictionary(store: SqlStore, ref: SessionRef) -> None:
    """Keep contents as earlier releases did: with a dictionary that was trained on them."""
    mine = file_contents.c.session_key == ref.key
    with store.database.write() as connection:
        checksums = connection.scalars(select(file_contents.c.checksum).where(mine)).all()
        contents = {one: read_content(connection, ref.key, one) for one in checksums}
        trained = zstandard.train_dictionary(1024, list(contents.values()))
        taught = {"number": trained.dict_id(), "payload": trained.as_bytes(), "digest": checksum_of(trained.as_bytes())}
        connection.execute(insert(file_dictionaries).values(session_key=ref.key, **taught))
        for checksum, content in contents.items():
            payload = zstandard.ZstdCompressor(level=12, dict_data=trained).compress(content)
            kept = {"form": "dense", "dictionary": trained.dict_id(), "payload": payload}
            this = update(file_contents).where(mine, file_contents.c.checksum == checksum)
            connection.execute(this.values(kept))


def keep_in_all_tiers(store: SqlStore, ref: SessionRef) -> None:
    """Two hot files, of which one is pinned, 30 warm and 8 cold ones; contents need a dictionary."""
    rules = TierSettings(hot=TierRule(files=2, seconds=1, files_after_cleanup=1))
    for number in range(40):
        said = f"# {HEADING}\nkept_{number} = {number}\n"
        store.kept_files.open(ref, seen_file(f"f{number}.py", said), now=1.0, rules=rules, pinned=number == 39)
    times = {"collected_at": 1.0, "optimised_at": 1.0, "crowded_at": 1.0}
    store.kept_files.change(ref, lambda tiers: tiers, rules=rules, times=times)
    pack_with_dictionary(store, ref)
