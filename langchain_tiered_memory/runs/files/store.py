"""Kept files of a session: which tier each is in, what it holds, and what happened to them.

Whoever changes a place locks the session's row first, reads hot and warm, asks the rules (`policy.py`) and writes what
they say, in one transaction. So no reader, in whatever process, ever sees a tier with more files than it may hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.changes import KeptFilePacking, write_run
from langchain_tiered_memory.runs.files.content_rows import (
    drop_unused,
    insert_content,
    packed,
    raw,
    read_content,
    repack,
    replace_content,
)
from langchain_tiered_memory.runs.files.file_rows import (
    drop_files,
    insert_file,
    moves_between,
    opened_since,
    read_rows,
    tiers_of,
    update_file,
    write_changes,
)
from langchain_tiered_memory.runs.files.reads import ENDED, reports_in
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.types.files import KeptFile, OpenedFile, TierMove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, RowMapping

    from langchain_tiered_memory.runs.files.policy import Tiers
    from langchain_tiered_memory.settings.runs import TierSettings
    from langchain_tiered_memory.types.files import FileState, Tier
    from langchain_tiered_memory.types.records import SessionRef

_SEEN = ("kind", "size", "modified_ns", "checksum", "deleted")
"""What a row has of a file as it was found, besides the names in it."""
_MAY_CHANGE = ("modified_ns", "deleted", "dependencies")
"""Of a file whose content is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """A file as it was found, on the disk or in somebody's hands."""

    path: str
    kind: str
    size: int
    modified_ns: int | None
    checksum: str
    content: bytes | None = None
    """`None` where it is what is kept already."""
    dependencies: tuple[str, ...] = ()
    deleted: bool = False


class KeptFiles(KeptFilePacking):
    """Changes the places of kept files. Each method is one transaction."""

    def open(
        self, ref: SessionRef, seen: SeenFile, *, now: float, rules: TierSettings, pinned: bool = False
    ) -> OpenedFile | None:
        """Take a file into hot and give its content; `None` where that is not kept and `seen` does not bring it."""
        came_back: int | None = None
        with self._changing(ref) as (connection, row):
            found = read_rows(connection, ref.key, [seen.path])
            before = found.get(seen.path)
            if seen.content is None and (before is None or before["checksum"] != seen.checksum):
                return None
            order = row["next_order"]
            # Its content comes first: what cannot be read leaves no trace of having been opened.
            content = seen.content if seen.content is not None else read_content(connection, ref.key, seen.checksum)
            if before is not None and now - before["accessed_at"] < rules.warm.seconds:
                since = before["access_order"]
                came_back = opened_since(connection, ref.key, since) if before["tier"] != "hot" else 0
            tiers = policy.fit(tiers_of(found), rules)
            tiers = policy.access(tiers, seen.path, now=now, order=order, size=seen.size, rules=rules)
            if pinned:
                tiers = policy.pin(tiers, seen.path, rules)
            moves = moves_between(found, tiers)
            write_changes(connection, ref.key, found, tiers)
            _take_in(connection, ref.key, before, seen=seen, content=content, file=tiers.files[seen.path])
            repack(connection, ref.key, [one for one in moves if one.path != seen.path], found)
            from_tier: Tier | None = before["tier"] if before is not None else None
            counts = {f"opened_{from_tier or 'new'}": 1, **_counts(moves)}
            write_run(connection, ref, row, {"next_order": order + 1}, counts)
        if came_back is not None:
            self.returns.note(ref.key, at=now, distance=came_back)
        file = _as_kept(seen, tiers.files[seen.path], before)
        state: FileState = "new" if before is None else "deleted" if seen.deleted else "unchanged"
        if before is not None and before["checksum"] != seen.checksum:
            state = "changed"
        return OpenedFile(file=file, content=content, state=state, from_tier=from_tier, moves=moves)

    def change(
        self,
        ref: SessionRef,
        rule: Callable[[Tiers], Tiers],
        *,
        rules: TierSettings,
        paths: Iterable[str] = (),
        times: Mapping[str, float | None] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> tuple[TierMove, ...]:
        """Apply a rule of `policy` to the tiers as they are within the limits, and write down its time and its count.

        The rule sees hot, warm and the cold files of `paths`; `times` are columns of `RunTimes` to be set, `counts` to
        be raised.
        """
        with self._changing(ref) as (connection, row):
            found = read_rows(connection, ref.key, paths)
            after = rule(policy.fit(tiers_of(found), rules))
            moves = moves_between(found, after)
            write_changes(connection, ref.key, found, after)
            repack(connection, ref.key, moves, found)
            write_run(connection, ref, row, dict(times or {}), {**_counts(moves), **(counts or {})})
        return moves

    def save_of_run(self, ref: SessionRef, what: str, state: Mapping[str, Any]) -> None:
        """Keep what is known of a run for the process that ends it, or of one that ended: of earlier ones nothing."""
        with self._changing(ref) as (connection, row):
            before = {} if what == ENDED else reports_in(connection, row)
            write_run(connection, ref, row, {"report": json.dumps({**before, what: state})}, {})

    def mark_deleted(self, ref: SessionRef, paths: Sequence[str]) -> None:
        """Note that files are gone from the disk."""
        with self._changing(ref) as (connection, _):
            for path in paths:
                update_file(connection, ref.key, path, {"deleted": True})

    def drop(self, ref: SessionRef, paths: Sequence[str]) -> int:
        """No longer keep these files; returns how many went."""
        with self._changing(ref) as (connection, _):
            return drop_files(connection, ref.key, paths)


def _as_kept(seen: SeenFile, file: policy.Placed, before: RowMapping | None) -> KeptFile:
    """What is known of a file from now on."""
    is_same = before is not None and before["checksum"] == seen.checksum
    return KeptFile(
        tier=file.tier,
        changed_at=before["changed_at"] if before is not None and is_same else file.accessed_at,
        accessed_at=file.accessed_at,
        accesses=file.accesses,
        pinned=file.pinned,
        **{name: getattr(seen, name) for name in ("path", "dependencies", *_SEEN)},
    )


def _take_in(
    connection: Connection, key: int, before: RowMapping | None, *, seen: SeenFile, content: bytes, file: policy.Placed
) -> None:
    """Write what was seen of a file, and its content in the form of its tier.

    A file that is new may have a row all the same, which is damaged: what was seen takes its place.
    """
    if before is None:
        drop_files(connection, key, [seen.path])
    values: dict[str, Any] = {name: getattr(seen, name) for name in _SEEN}
    values["dependencies"] = rows.names_to_json(seen.dependencies)
    is_other = before is None or before["checksum"] != seen.checksum
    if is_other:
        values["changed_at"] = file.accessed_at
    form = raw(content) if file.tier == "hot" else packed(content)
    if seen.content is not None:
        insert_content(connection, key, seen.checksum, form)
    if file.tier == "hot" and (before is None or is_other or before["tier"] != "hot"):
        replace_content(connection, key, seen.checksum, form)  # a file below may have it already, packed
    if before is None:
        insert_file(connection, key, file, values)
        return
    if is_other or any(before[name] != values[name] for name in _MAY_CHANGE):
        update_file(connection, key, seen.path, values)
    if is_other:
        drop_unused(connection, key, [before["checksum"]])


def _counts(moves: Sequence[TierMove]) -> dict[str, int]:
    up = sum(one.is_promotion for one in moves)
    found = {"promotions": up, "demotions": len(moves) - up}
    return {name: count for name, count in found.items() if count}
