"""Which readings of files a view need not show once more: their text stands above, in the same view.

A file that an agent opens again often says, word for word, what a result above says. That is decided for each view
from what it shows, never when a tool runs: a pointer written into the transcript would outlive the text that it leads
to. So the transcript keeps every result whole, and where the earlier one leaves a view, or is masked, the later one
stands there whole.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import Piece, shown
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.file_accesses import reads_alone, touches_of_call
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


def repeated_reads(
    entries: Sequence[Entry],
    settings: FileSettings,
    *,
    not_whole: Collection[int],
    reworded: Collection[str],
) -> Iterator[tuple[Entry, Entry, str]]:
    """The results that need not be shown again, each with the one that says its text, and the file; oldest first.

    Failed calls and pinned results are left as they are.

    Args:
        entries: What a view shows as itself, in its order.
        settings: Which tools read, and which arguments name files.
        not_whole: `seq`s of those that are shown in part.
        reworded: Ids of those whose words others change before they are sent.
    """
    latest: dict[str | None, Entry] = {}
    asked: dict[int, Entry] = {}
    for entry in entries:  # ids of calls may come again
        latest |= dict.fromkeys(entry.calls, entry)
        if entry.answers in latest:
            asked[entry.seq] = latest[entry.answers]
    results = [one for one in entries if one.seq in asked and one.tokens >= NUMBERS.least_gain]
    said = Counter(one.text for one in results)
    standing: dict[str, Entry] = {}
    for entry in results:
        call = entry.answers or ""
        if said[entry.text] < 2 or entry.seq in not_whole or entry.id in reworded:  # noqa: PLR2004 - once is no repeat
            continue
        path, text = _files_read(asked[entry.seq], settings).get(call), _text_shown(entry)
        if path is None or text is None:
            continue
        above = standing.setdefault(text, entry)
        if above is not entry and not entry.pinned:
            yield entry, above, path


def pointing(entry: Entry, stands_in: Entry, path: str, *, counter: TokenCounter) -> Piece | None:
    """A repeated reading as a line that leads to its text; `None` where that saves too little."""
    message = message_or_stand_in(entry)[0]
    tool = f" (the result of {plain_name(stands_in.name)})" if stands_in.name else ""
    line = f"['{plain_label(path)}' has the same text as message {stands_in.seq} above{tool}: see it there]"
    said = message.model_copy(update={"content": line})
    tokens = counter.count_message(said)
    if tokens + NUMBERS.least_gain > entry.tokens:
        return None
    return Piece(part="recent", message=said, tokens=tokens, entry=entry, stands_in=stands_in)


def without_astray(pieces: Sequence[Piece], sent: Sequence[BaseMessage]) -> list[Piece] | None:
    """`pieces` with the results whole whose text does not stand above them in what is sent; `None`: all do.

    Others may have come in between: repairs move a result that came late, and a provider's compaction stands first.
    """
    leads = {str(piece.message.content): piece.stands_in for piece in pieces if piece.stands_in is not None}
    above, astray = set[str | None](), set[str]()
    for message in sent if leads else ():
        stands_in = leads.get(str(message.content))
        if stands_in is not None and _text_shown(stands_in) not in above:
            astray.add(str(message.content))
        above.add(_only_text(message))
    if not astray:
        return None
    return [
        shown(one.entry) if one.entry and one.stands_in and str(one.message.content) in astray else one
        for one in pieces
    ]


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


def _files_read(entry: Entry, settings: FileSettings) -> dict[str, str]:
    """Of the calls of a message that do nothing but read files, by id, the first file."""

    def read() -> dict[str, str]:
        made = [(call, touches_of_call(call, settings)) for call in requested_calls(message_or_stand_in(entry)[0])]
        return {call.id: touches[0].path for call, touches in made if call.id and reads_alone(call, touches, settings)}

    return read_of(("files read", settings.model_dump_json(), entry.payload), read, size=len(entry.payload))


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
