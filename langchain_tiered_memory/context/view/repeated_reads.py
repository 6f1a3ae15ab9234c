"""Which readings of files a view need not show once more: their text stands above, in the same view.

A file that an agent opens again unchanged says, word for word, what a result above says. That is decided for each view
from what it shows, never when a tool runs: a pointer written into the transcript would outlive the text that it leads
to. So the transcript keeps every result whole, and where the earlier one leaves a view, or is masked, the later one
stands there whole.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import Piece, shown
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.file_accesses import may_be_same, reads_alone, touches_of_call
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.text.fencing import plain_label, plain_name
from langchain_tiered_memory.text.readings import read_of
from langchain_tiered_memory.transcript.outbox import write_if_possible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import FileSettings
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.records import Entry, SessionRef

_END_CHARS = 200
"""By so much of their ends texts are told apart, before anything is read of the calls that gave them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A call that reads files and does nothing else."""

    paths: tuple[str, ...]
    call: str
    """Tool and arguments."""


_Asked: TypeAlias = tuple[dict[str, _Look], frozenset[str]]
"""The looks that a message asks for, by call, and the files that others of its calls write."""
_NOTHING: _Asked = ({}, frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What such a call showed, where the view shows it whole."""

    look: _Look
    entry: Entry
    text: str


def repeated_reads(
    entries: Sequence[Entry],
    settings: FileSettings,
    *,
    not_whole: Collection[int],
    reworded: Collection[str],
) -> Iterator[tuple[Entry, Entry, str]]:
    """The results that need not be shown again, each with the one that says its text, and the file; oldest first.

    A file that a call changed since is none that is unchanged, whatever it says now; nor is one of which the same call
    gave another text in between. Failed calls and pinned results are left as they are.

    Args:
        entries: What a view shows as itself, in its order.
        settings: Which tools read, and which arguments name files.
        not_whole: `seq`s of those that are shown in part.
        reworded: Ids of those whose words others change before they are sent.
    """
    parted = _with_their_calls(entries, settings) if settings.enabled else {}
    if not any(looks for looks, _ in parted.values()):
        return
    asked: dict[str, _Look] = {}
    standing: list[_Standing] = []
    for entry in entries:
        if entry.calls:
            looks, written = parted.get(entry.seq, _NOTHING)
            asked = {key: look for key, look in (asked | looks).items() if not _concerns(look, written)}
            standing = [one for one in standing if not _concerns(one.look, written)]
            continue
        look = asked.pop(entry.answers, None) if entry.answers is not None else None
        text = _text_shown(entry) if look is not None else None
        if look is None or text is None:
            continue
        if any(one.look.call == look.call and not _says(one, look, text) for one in standing):
            standing = [one for one in standing if not _concerns(one.look, look.paths)]
        if entry.seq in not_whole or entry.id in reworded:
            continue
        above = next((one for one in reversed(standing) if _says(one, look, text)), None)
        if above is None or entry.pinned:
            standing.append(_Standing(look=look, entry=entry, text=text))
        else:
            yield entry, above.entry, look.paths[0]


def pointing(entry: Entry, stands_in: Entry, path: str, *, counter: TokenCounter) -> Piece | None:
    """A repeated reading as a line that leads to its text; `None` where that saves too little."""
    message = message_or_stand_in(entry)[0]
    tool = f" (the result of {plain_name(stands_in.name)})" if stands_in.name else ""
    line = f"['{plain_label(path)}' is unchanged since message {stands_in.seq} above{tool}: see its text there]"
    said = message.model_copy(update={"content": line})
    tokens = counter.count_message(said)
    if tokens + NUMBERS.least_gain > entry.tokens:
        return None
    return Piece(part="recent", message=said, tokens=tokens, entry=entry, stands_in=stands_in)


def without_astray(pieces: Sequence[Piece], sent: Sequence[BaseMessage]) -> list[Piece] | None:
    """`pieces` with the results whole whose text does not stand above them in what is sent; `None`: all do.

    Others may have come in between: repairs move a result that came late, and a provider's compaction stands first.
    """
    astray = {id(piece) for piece in pieces if piece.stands_in is not None and not _leads(piece, sent)}
    if not astray:
        return None
    return [shown(piece.entry) if piece.entry is not None and id(piece) in astray else piece for piece in pieces]


def _leads(piece: Piece, sent: Sequence[BaseMessage]) -> bool:
    text = _text_shown(piece.stands_in) if piece.stands_in is not None else None
    for message in sent:
        if message.content == piece.message.content:
            return False
        if text is not None and _only_text(message) == text:
            return True
    return True  # whoever took the result out took the pointer out


def tell_repeated(runtime: Runtime, ref: SessionRef, pieces: Sequence[Piece], context: Context) -> None:
    """Say once of each result that the model waits for, and count, that it was pointed to and what that saved."""
    spoken = (at for at, piece in enumerate(pieces) if piece.entry is not None and piece.entry.role == "assistant")
    behind = pieces[max(spoken, default=-1) + 1 :]
    news = {piece.entry.id for piece in behind if piece.entry is not None and piece.stands_in is not None}
    recent = context.section("recent") if news else None
    for left in recent.left_out if recent is not None else ():
        if left.what not in news or not runtime.view_cache.first_time(("repeated", ref.key, left.what)):
            continue
        runtime.report(
            EventName.FILE_OFFERED,
            f"{left.reason}, {left.tokens} tokens saved",
            session_id=ref.session_id,
            message_id=left.what,
            tokens=left.tokens,
        )
        counts = {"offered": 1, "offered_tokens": left.tokens}
        change, rules = runtime.store.kept_files.change, runtime.settings.tiers
        write_if_possible(runtime, ref.session_id, change, ref, lambda tiers: tiers, rules=rules, counts=counts)


def _with_their_calls(entries: Sequence[Entry], settings: FileSettings) -> dict[int, _Asked]:
    """What the messages ask for that have to do with results which may say the same, by `seq`. Mostly there are none.

    The others are not read: a call that names no such file neither shows nor changes one.
    """
    ends: dict[str, list[str]] = {}
    for entry in entries:
        if entry.answers is not None and entry.tokens >= NUMBERS.least_gain:
            ends.setdefault(entry.text[-_END_CHARS:], []).append(entry.answers)
    equal = {call for calls in ends.values() if len(calls) > 1 for call in calls}
    if not equal:
        return {}

    as_set = settings.model_dump_json()

    def read(entry: Entry) -> _Asked:
        key = "looks", as_set, entry.payload
        return read_of(key, lambda: _asked(entry, settings), size=len(entry.payload))

    found = {entry.seq: read(entry) for entry in entries if not equal.isdisjoint(entry.calls)}
    paths = {path for looks, _ in found.values() for look in looks.values() for path in look.paths}
    names = {json.dumps(posixpath.basename(path.replace("\\", "/")))[1:-1] for path in paths}
    for entry in entries:
        if entry.calls and entry.seq not in found and any(name in entry.payload for name in names):
            found[entry.seq] = read(entry)
    return found


def _asked(entry: Entry, settings: FileSettings) -> _Asked:
    """The calls of a message that only read files, by id, and the files that others of its calls write."""
    looks: dict[str, _Look] = {}
    written: set[str] = set()
    for call in requested_calls(message_or_stand_in(entry)[0]):
        touches = touches_of_call(call, settings)
        written |= {touch.path for touch in touches if touch.operation == "write"}
        if call.id is not None and reads_alone(call, touches, settings):
            said = json.dumps([call.name, call.args], sort_keys=True, default=str)
            looks[call.id] = _Look(paths=tuple(touch.path for touch in touches), call=said)
    return looks, frozenset(written)


def _concerns(look: _Look, paths: Collection[str]) -> bool:
    return any(may_be_same(path, other) for path in look.paths for other in paths)


def _says(standing: _Standing, look: _Look, text: str) -> bool:
    """Whether a text of the same files stands there, be it behind a line that says more of it."""
    above, there, here = standing.text, standing.look.paths, look.paths
    if len(there) != len(here) or not (above == text or above.endswith(f"\n{text}")):
        return False
    return all(may_be_same(one, other) for one, other in zip(there, here, strict=True))


def _text_shown(entry: Entry) -> str | None:
    """All that a result says, where it is one text that can be read and no error."""
    message, damaged = message_or_stand_in(entry)
    if damaged is not None or getattr(message, "status", "success") == "error":
        return None
    return _only_text(message)


def _only_text(message: BaseMessage) -> str | None:
    if isinstance(message.content, str):
        return message.content
    if len(message.content) != 1:
        return None
    block = message.content[0]
    if isinstance(block, str):
        return block
    return block["text"] if block.get("type") == "text" and isinstance(block.get("text"), str) else None
