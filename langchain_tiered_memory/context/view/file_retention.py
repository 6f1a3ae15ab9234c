"""What of an agent's work on files stays word for word when its view is condensed.

An agent comes back to parts of what it read or wrote: an edit needs the file's own words, and no summary has them. So
after a condensation the room that the next steps do not need at once is filled with parts of files (`file_parts`), in
one quoted message between the summaries and the recent messages. The text stands in the plan, so it keeps its bytes
until the next condensation; the summaries go on standing for the messages as well. A history without file tools has
none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import OVERHEAD_TOKENS, ours
from langchain_tiered_memory.context.view.file_parts import FileText, file_parts, words_in
from langchain_tiered_memory.context.view.rendered_view import RenderedView, seen_with
from langchain_tiered_memory.messages.file_accesses import UNNAMED_BY
from langchain_tiered_memory.messages.file_calls import file_calls
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.runs.file_list import accessed_files, files_block
from langchain_tiered_memory.summaries.rendering import parts_block

if TYPE_CHECKING:
    from langchain_tiered_memory.context.request import Inputs

_CANDIDATES = 120
"""Latest groups with file work that are looked at."""
_BETWEEN = 600
"""Latest messages among which commands are looked for that name no file: as long as parts are chosen from."""
_TEXTS = 400
"""Latest changes and readings among which parts are chosen: each is held against those before it."""
_LISTED_FILES = 300
"""Files looked at for the list; it shows the latest."""


def with_file_work(inputs: Inputs, rendered: RenderedView, *, anew: bool = False) -> RenderedView:
    """`rendered` with the parts of files that are worth most, and its list of files, as far as there is room.

    They are chosen `anew` for the room that steps left free. Where it does not fit then, something is shortened in any
    case, and says hardly less for the room of parts.
    """
    if not inputs.mode.shows_parts or not rendered.plan.border:
        return rendered
    bare = _without_seen_readings(inputs, rendered)
    if anew:
        bare = seen_with(inputs, replace(bare.plan, files="", parts=""), bare.tail)
    is_full = anew and bare.tokens > inputs.room
    room = bare.tokens + inputs.policy.stays if is_full else _filled(inputs) - inputs.policy.of("files")
    shown = _with_parts(inputs, bare, room=room)
    return with_files(inputs, shown) if shown.plan.parts else rendered


def _without_seen_readings(inputs: Inputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with the readings of files that the model has seen cut, for their lines are chosen with all others.

    What was read last is worth no more for that than what the agent wrote before: a line has the room that it is worth,
    wherever it was shown first.
    """
    masked, tail = dict(rendered.plan.masked), {entry.seq: entry for entry in rendered.tail}
    seen = max((entry.seq for entry in rendered.tail if entry.role == "assistant"), default=0)
    for call in file_calls(as_groups(rendered.tail), inputs.settings.files):
        answer = tail[call.answer_seq]
        if call.reading is None or call.refused or answer.pinned or answer.seq > seen:
            continue
        stands = masked.get(answer.seq, answer.tokens - OVERHEAD_TOKENS)
        if stands - NUMBERS.least_readable_tokens >= NUMBERS.least_gain:
            masked[answer.seq] = NUMBERS.least_readable_tokens
    plan = replace(rendered.plan, masked=tuple(sorted(masked.items())))
    return rendered if plan == rendered.plan else seen_with(inputs, plan, rendered.tail)


def _filled(inputs: Inputs) -> int:
    """Tokens that a view is filled to when it is made smaller, its list of files included."""
    return inputs.fill if inputs.fill is not None else round(NUMBERS.filled_share * inputs.room)


def with_fewer_parts(inputs: Inputs, rendered: RenderedView, *, room: int) -> RenderedView:
    """`rendered` with parts of files only as far as `room` has place for them beside all else that it shows.

    Where there are too many they are chosen for what a condensation fills a view to: the cache is broken there anyway,
    and a view left full would break it again at the next message.
    """
    if not rendered.plan.parts or rendered.tokens <= room:
        return rendered
    return _with_parts(inputs, rendered, room=min(room, _filled(inputs)))


def _with_parts(inputs: Inputs, rendered: RenderedView, *, room: int) -> RenderedView:
    """`rendered` with its parts of files chosen anew, for a view of `room` tokens."""
    counter, plan = inputs.counter, rendered.plan
    beside = rendered.tokens - rendered.tokens_of("parts")
    free = room - beside - ours(parts_block(""), part="parts", counter=counter).tokens
    parts = ""
    if free >= NUMBERS.part_least_tokens:
        texts, doing = _file_texts(inputs, rendered), _doing(inputs, rendered)
        parts = file_parts(texts, room=free, count=counter.count_text, doing=doing)
    return rendered if parts == plan.parts else seen_with(inputs, replace(plan, parts=parts), rendered.tail)


def _file_texts(inputs: Inputs, rendered: RenderedView) -> list[FileText]:
    """What calls read and wrote, oldest first: of the latest groups with file work, and of the recent messages."""
    plan, store, settings = rendered.plan, inputs.runtime.store, inputs.settings.files
    standing = {entry.seq for entry in rendered.tail} - {seq for seq, _ in plan.masked}
    seqs = store.files.worked_on(inputs.ref, track=inputs.track, before=plan.tail_from, limit=_CANDIDATES)
    found = store.transcript.groups_of(inputs.ref, seqs) if seqs else []
    entries = {entry.seq: entry for entry in (*found, *rendered.tail) if entry.seq not in inputs.off}
    ages, age = dict[int, int](), 0
    for group in reversed(as_groups(entries.values())):
        ages[group.first_seq] = age
        age += group.tokens
    if seqs:  # between the work that is looked at, calls may change files without naming them
        read = inputs.entries(after=min(seqs), up_to=plan.tail_from - 1, limit=_BETWEEN)
        changing = {one.group for one in read if one.calls and any(name in one.payload for name in UNNAMED_BY)}
        entries = {one.seq: one for one in read if one.group in changing} | entries
    texts = [
        FileText(seq=seq, age=ages.get(call.group, 0), text=text, shown=seq in standing)
        for call in file_calls(as_groups(sorted(entries.values(), key=lambda entry: entry.seq)), settings)
        if not call.refused
        for seq, text in call.texts()
    ]
    return texts[-_TEXTS:]


def _doing(inputs: Inputs, rendered: RenderedView) -> frozenset[str]:
    """The words of the newest messages, of what the assistant said lately and of what the user asks for."""
    words = set(words_in(inputs.required.last_user_text))
    tokens = 0
    for number, entry in enumerate(reversed(rendered.tail)):
        tokens += entry.tokens
        if number >= NUMBERS.doing_messages and tokens > NUMBERS.doing_tokens:
            break
        words |= words_in(entry.text)
    answers = [entry for entry in rendered.tail if entry.role == "assistant"]
    for entry in answers[-NUMBERS.doing_messages :]:
        words |= words_in(text_of(message_or_stand_in(entry)[0]))
    return frozenset(words)


def with_files(inputs: Inputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with the list of touched files, within its own room, the message included.

    Without those that were not changed and that something in it names anyway. That is looked for in what is shown, for
    an output that is masked or cut names nothing any more.
    """
    plan = rendered.plan
    if not (plan.border or plan.left or plan.left_spans):
        return rendered
    touched = inputs.library.touched
    if touched is None:
        touched = accessed_files(inputs.runtime, inputs.ref, track=inputs.track, limit=_LISTED_FILES, off=inputs.off)
        inputs.library.touched = touched
    cut = {seq for seq, _ in plan.masked}
    shown = "\n".join(entry.payload for entry in rendered.tail if entry.seq not in cut)
    parts = plan.parts
    named = {one for one in touched if one.path in parts or json.dumps(one.path)[1:-1] in shown}
    elsewhere = {one for one in named if one.operation == "write"}
    listed = [one for one in touched if one not in named or one in elsewhere]

    def with_its_message(text: str) -> int:
        return ours(text, part="files", counter=inputs.counter).tokens

    block = files_block(listed, room_tokens=inputs.policy.of("files"), count=with_its_message, elsewhere=elsewhere)
    return rendered if block == plan.files else seen_with(inputs, replace(plan, files=block), rendered.tail)
