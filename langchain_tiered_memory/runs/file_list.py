"""The files that a run touched: each once, and as a text for a small room, what was changed first, the latest first.

Which files are named goes by when they were read or changed last: an agent comes back to those soonest, whichever of
the two it did. What was only found or listed comes behind them, for a search names many files that nobody opens.

A path that stands there whole can be copied into the next call, and costs a line. So the files read or changed last are
written whole in most of the room, up to as many as somebody looks through, and the others are folded: their common
folder is said once, and each file is named below it. Only what does not fit even so is counted instead of named.
"""

from __future__ import annotations

import posixpath
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.file_accesses import is_at, same_names
from langchain_tiered_memory.messages.file_calls import calls_read, gone_files, judged, refused_touches
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.text.fencing import plain_label, plain_name
from langchain_tiered_memory.text.truncation import most_fitting
from langchain_tiered_memory.types.drafts import FINDING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from langchain_tiered_memory.messages.file_calls import FileCall
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import FileAccess, FileOperation

HEADING = "Files of this run, latest first"
_SHORT = "\u2026"
_GROUPS: tuple[tuple[FileOperation, str], ...] = (
    ("write", "changed"),
    ("read", "read"),
    ("search", "found"),
    ("list", "listed"),
)
_NAMES = dict(_GROUPS)
_RANK = {operation: rank for rank, (operation, _) in enumerate(_GROUPS)}


_WHOLE_SHARE = 0.97
"""Of a room that is too small for all paths whole, for those that are."""
_MOST_WHOLE = 100
"""Paths in lines of their own: more than a small budget has room for, and no more than are looked through one by one.
The rest of a longer list is read by its folders."""


_LOOKED_AT = 300
"""Latest names among which two of one file are looked for, and latest calls that are held against each other: a view
lists as many at most."""


def accessed_files(
    runtime: Runtime, ref: SessionRef, *, track: str, limit: int, off: Collection[int] = ()
) -> list[FileAccess]:
    """One access for each file that calls of a track touched, the latest first.

    Messages in `off` do not count, nor does a call that came to nothing, nor a file that was moved or removed since.
    """
    files = each_once(latest_touches(runtime, ref, track=track, limit=max(limit, _LOOKED_AT), off=off))[:limit]
    turns = runtime.store.files.turns(ref, {_told(one) for one in files}, track=track)
    return [replace(one, turn=turns[_told(one)]) for one in files]


def latest_touches(
    runtime: Runtime, ref: SessionRef, *, track: str | None, limit: int, off: Collection[int] = ()
) -> list[FileAccess]:
    """The same, one access for each path as it was written, of a track or of all."""
    calls = [call for call in _latest_calls(runtime, ref, track) if call.seq not in off]
    gone = gone_files(calls)
    found = runtime.store.files.latest(ref, track=track, limit=limit, but=refused_touches(calls), off=off)
    return [one for one in found if not any(one.seq <= seq and is_at(one.path, path) for seq, path in gone)]


def _latest_calls(runtime: Runtime, ref: SessionRef, track: str | None) -> list[FileCall]:
    """The latest calls on files, without what they say of files: each is read once, and judged each time."""
    store, cache, name = runtime.store, runtime.view_cache, f"file calls:{track}"
    seqs = store.files.worked_on(ref, track=track, limit=_LOOKED_AT)
    kept: dict[int, tuple[FileCall, ...]] = cache.recalled(ref.key, name, ref.epoch) or {}
    missing = [seq for seq in seqs if seq not in kept]
    if missing:
        groups = as_groups(store.transcript.groups_of(ref, missing))
        read: dict[int, tuple[FileCall, ...]] = {one.first_seq: () for one in groups}
        for call in calls_read(groups, runtime.settings.files):
            read[call.group] += (replace(call, changes=(), reading=None),)
        kept = {seq: kept[seq] for seq in seqs if seq in kept} | read
        waiting = {one.first_seq for one in groups if one.unanswered}
        cache.keep_recalled(ref.key, name, ref.epoch, {seq: kept[seq] for seq in kept.keys() - waiting})
    return judged([call for seq in sorted(seqs) for call in kept.get(seq, ())])


def _told(access: FileAccess) -> int:
    """The message that an access is listed with: of a changed file the one that changed it."""
    return access.changed_in or access.seq


def each_once(accesses: Iterable[FileAccess]) -> list[FileAccess]:
    """Of the accesses to one file the latest, under its longest name; a change stays one, then a reading.

    What others lie in is a folder, and none of the files.
    """
    ordered = sorted(accesses, key=lambda one: (-one.seq, -one.at, one.operation != "write", one.path))
    names = same_names({one.path for one in ordered})
    known = "\n".join(["", *names, *names.values()])
    folders = frozenset(part for path in (*names, *names.values()) for part in path.split("/")[:-1])
    latest: dict[str, FileAccess] = {}
    for access in ordered:
        name = names[access.path]
        lie_in = [path for path in (name, access.path) if path.rpartition("/")[2] in folders]
        if any(f"{before}{path}/" in known for path in lie_in for before in ("\n", "/")):
            continue
        newer = latest.setdefault(name, access)
        if newer is access:
            continue
        path = max(newer.path, access.path, key=len)
        change = min(newer, access, key=lambda one: _RANK[one.operation])
        in_ = change.changed_in
        latest[name] = replace(newer, path=path, operation=change.operation, tool=change.tool, changed_in=in_)
    return list(latest.values())


def files_block(
    accesses: Sequence[FileAccess],
    *,
    room_tokens: int,
    count: Callable[[str], int],
    elsewhere: Collection[FileAccess] = (),
) -> str:
    """A list of touched files that takes at most `room_tokens`; empty where there is nothing, or no room for one.

    Grouped into changed, read, found and listed, in this order; in each the latest access first. What goes first when
    the room is short: tool and turn of each access, then whole paths (the others are folded), then the files that
    were only found or listed, then those read or changed longest ago; the last line counts them ("and 7 more"). Every
    folded path can be put together again from its folder and its name.

    Args:
        accesses: What was touched; of the accesses to one file the latest counts, and a change stays a change.
        room_tokens: What the text may take.
        count: Tokens of a bare text.
        elsewhere: Those of them that are named beside the list anyway: the first to be folded or counted of what was
            read or changed.
    """
    named_beside = {plain_label(one.path) for one in elsewhere}
    labelled = (replace(one, path=plain_label(one.path)) for one in each_once(accesses))
    # The latest changed or read first, but for those named beside it, then what was only found or listed.
    files = sorted(
        labelled, key=lambda one: (one.operation in FINDING, one.path in named_beside, -one.seq, -one.at, one.path)
    )
    everything = len(files)
    most_whole = min(everything, _MOST_WHOLE)
    if not files or room_tokens <= 0:
        return ""
    for marked in (True, False):
        if count(text := _text(files, named=everything, whole=most_whole, marked=marked)) <= room_tokens:
            return text

    def fits(named: int, whole: int, room: float = room_tokens) -> bool:
        return count(_text(files, named=named, whole=whole)) <= room

    first = most_fitting(most_whole, lambda number: fits(number, number, _WHOLE_SHARE * room_tokens))
    named = most_fitting(everything, lambda number: fits(number, first), least=first)
    whole = most_fitting(min(named, most_whole), lambda number: fits(named, number), least=first)
    text = _text(files, named=named, whole=whole)
    return text if named and count(text) <= room_tokens else ""


def _in_groups(files: Sequence[FileAccess]) -> list[FileAccess]:
    return sorted(files, key=lambda one: (_RANK[one.operation], -_told(one), -one.at, one.path))


def _text(files: Sequence[FileAccess], *, named: int, whole: int, marked: bool = False) -> str:
    """The list with the first `named` files of `files` in it, of which the first `whole` have their whole path."""
    lines = [HEADING]
    for operation, members in groupby(_in_groups(files[:whole]), key=lambda one: one.operation):
        lines.append(f"{_NAMES[operation]}:")
        lines += (one.path + (f" (via {plain_name(one.tool)}, turn {one.turn})" if marked else "") for one in members)
    lines += _folded(_in_groups(files[whole:named]))
    if named < len(files):
        lines.append(f"and {len(files) - named} more")
    return "\n".join(lines)


def _folded(files: Sequence[FileAccess]) -> list[str]:
    """Lines such as `changed in .../strategy: a.py, b.py`, behind one that says what `...` stands for."""
    base = _common_folder([one.path for one in files])
    lines = [f"{_SHORT} = {base}"] if base else []
    for operation, members in groupby(files, key=lambda one: one.operation):
        by_folder: dict[str, list[str]] = {}
        for one in members:
            folder, name = posixpath.split(one.path)
            by_folder.setdefault(folder, []).append(name)
        for folder, names in by_folder.items():
            lines.append(f"{_NAMES[operation]}{_within(folder, base)}: {', '.join(names)}")
    return lines


def _within(folder: str, base: str) -> str:
    if base and (folder == base or folder.startswith(f"{base}/")):
        folder = _SHORT + folder[len(base) :]
    return f" in {folder}" if folder else ""


def _common_folder(paths: Sequence[str]) -> str:
    """The folder that saves most when it is said once: it stands above many of `paths`, and is long. Often none."""
    above: dict[str, set[str]] = {}
    for path in paths:
        folder = posixpath.dirname(path)
        steps = folder.split("/")
        for depth in range(2, len(steps) + 1):
            above.setdefault("/".join(steps[:depth]), set()).add(folder)
    saved = {base: (len(folders) - 1) * len(base) for base, folders in above.items()}
    best = max(saved, key=lambda base: (saved[base], base), default="")
    return best if best and saved[best] > 0 else ""
