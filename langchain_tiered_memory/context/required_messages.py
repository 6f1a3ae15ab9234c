"""What every context must show, read at once, however long the session is; and what the kinds of messages keep in view.

Messages of priority 1 of the matrix stand in all views, as far as the share of what is pinned goes, and are named where
it does not go; those of 2 and 3 take what room that leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning import priority_of_kind
from langchain_tiered_memory.context.compaction.pruning_items import USER_MESSAGES_KEPT, run_facts, task_of
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.messages.message_text import notices_of
from langchain_tiered_memory.runs.file_list import latest_touches
from langchain_tiered_memory.summaries.facts.related import COMMON_TERMS
from langchain_tiered_memory.summaries.tree.condense import ABANDONED_AFTER
from langchain_tiered_memory.text.small_talk import is_small_talk
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.compaction.pruning_items import RunFacts
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, Group, SessionRef

_LOOKED_AT = 3
"""Times as many of the user's messages are read as are shown: most of an agent's are orders, the others assent."""
_OPENING_PROMPTS = 3
"""System messages that a history may begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredMessages:
    """The goal, what is pinned, the last user messages, and where the part begins that must stay as it is."""

    opening: tuple[Entry, ...] = ()
    """System messages that the history began with, and the goal: the first user message."""
    pinned: tuple[Entry, ...] = ()
    last_seq: int = 0
    """The newest message."""
    has_other_tracks: bool = False
    """Whether the session has messages of other tracks."""
    worked_on: tuple[int, ...] = ()
    """`seq`s of the latest messages that worked on files, newest first, as many as make an agent busy."""
    guard: int = 1
    """The first of the newest messages: no plan condenses anything from here on."""
    held: frozenset[int] = frozenset()
    """First `seq`s of groups that stay, wherever they began: those that wait for a result since the user spoke last and
    are not given up for dead, and those that the newest messages belong to."""
    users: tuple[Entry, ...] = ()
    """The latest user messages, oldest first: more than are shown, for not each of them says something."""

    @property
    def last_user(self) -> Entry | None:
        """The latest user message."""
        return self.users[-1] if self.users else None

    @property
    def last_user_text(self) -> str:
        """What the user said last."""
        return self.last_user.text if self.last_user is not None else ""


def read_required(
    runtime: Runtime, ref: SessionRef, track: str, *, off: frozenset[int], alone: bool = False
) -> RequiredMessages:
    """Read them, without what is `off` this branch; where the track is shown `alone`, pins are its own."""
    found = runtime.store.transcript.required(
        ref,
        track=track,
        off=off,
        opening=_OPENING_PROMPTS,
        users=_LOOKED_AT * USER_MESSAGES_KEPT,
        newest=runtime.settings.condensation.keep_messages,
        worked_on=NUMBERS.busy_messages,
    )
    since = found.users[-1].seq if found.users else 0
    open_since = [head for head in found.waiting if head.seq >= since]
    return RequiredMessages(
        opening=found.opening,
        pinned=tuple(one for one in found.pinned if not alone or one.track == track),
        last_seq=max((entry.seq for entry in found.newest), default=0),
        has_other_tracks=found.has_other_tracks,
        worked_on=found.worked_on,
        guard=min((entry.seq for entry in found.newest), default=1),
        held=frozenset(
            [
                *(head.seq for head in open_since if not _is_abandoned(runtime, ref, head, off=off)),
                *(entry.group for entry in found.newest),
            ]
        ),
        users=found.users,
    )


def _is_abandoned(runtime: Runtime, ref: SessionRef, head: Entry, *, off: frozenset[int]) -> bool:
    """Whether so much came behind a call that no result is awaited any more, as where it is condensed."""
    behind = runtime.store.transcript.entries(ref, track=head.track, after=head.seq, limit=_MOST)
    return len({one.group for one in behind if one.seq not in off} - {head.group}) >= ABANDONED_AFTER


def queries_before(inputs: Inputs, is_hidden: Callable[[Entry], bool]) -> tuple[int, ...]:
    """`seq`s of the latest user messages that a view does not show itself: of `USER_MESSAGES_KEPT` those `is_hidden`.

    In the place of those among them that say nothing to who reads them alone, earlier ones that do. The last of all
    stays whatever it says: what is shown behind it may be the answer.
    """
    users = inputs.required.users
    hidden = [one for one in users if is_hidden(one)]
    room = sum(1 for one in users[-USER_MESSAGES_KEPT:] if is_hidden(one))
    notices = notices_of(users)
    telling = [one for one in hidden[:-1] if one.seq not in notices and says_something(one)]
    return tuple(one.seq for one in [*telling, *hidden[-1:]][-room:]) if room else ()


def says_something(entry: Entry) -> bool:
    """Whether a user's message tells something to who does not see what it answers: no "yes please", no "1+2"."""
    terms = frozenset(analyse(entry.text))
    return not is_small_talk(entry.text) and not all(term in COMMON_TERMS or term.isdigit() for term in terms)


def answered_before(inputs: Inputs, tail_from: int, *, since: int) -> int:
    """`seq` of the assistant's message that the user's last one answers, where a view from `tail_from` on lacks it.

    "The second" says nothing without it. It is the text right before, where the user says little: what takes many words
    says itself what it is about. 0 where there is none, or none behind `since`, where the view begins.
    """
    last = inputs.required.last_user
    if last is None or len(set(analyse(last.text))) > NUMBERS.brief_terms:
        return 0
    said = next(iter(inputs.entries(after=since, up_to=last.seq - 1, limit=1)), None)
    is_text = said is not None and said.role == "assistant" and not said.calls and said.text.strip()
    return said.seq if said is not None and is_text and said.seq < tail_from else 0


_MOST = 64
"""Messages of each row of the matrix that are looked at behind those that stand already, the newest: a share holds no
more."""
FINISHED_TASKS, _TOUCHED_FILES = 8, 100
"""Of a run, the newest, by which messages are judged."""
_ALWAYS = 1
_LEAVES_FIRST = 4


def run_at_hand(inputs: Inputs, groups: Sequence[Group], *, newest_finished: int) -> RunFacts:
    """What messages are judged by: tasks, the one at hand, the files touched on this branch, and each other.

    Where the request's track is shown alone, tasks of others are nothing to it.
    """
    store, track = inputs.runtime.store, inputs.track
    return run_facts(
        groups,
        settings=inputs.settings.files,
        tasks=store.runs.tasks(inputs.ref, newest_finished=newest_finished, track=inputs.request.only_track),
        current_task=store.runs.current_task(inputs.ref, track),
        touches=latest_touches(inputs.runtime, inputs.ref, track=track, limit=_TOUCHED_FILES, off=inputs.off),
    )


def kept_by_kind(inputs: Inputs, previous: ViewPlan | None) -> tuple[int, ...]:
    """`seq`s of the messages that their kinds keep in view, the most important last.

    What the plan before kept, and what came since, is all there is to choose from.
    """
    store = inputs.runtime.store
    since = previous.tail_from - 1 if previous is not None else 0
    numbers = {seq for row, seqs in _by_row(inputs).items() if row < _LEAVES_FIRST for seq in seqs if seq > since}
    if previous is not None:
        numbers.update(previous.always)
    found = store.transcript.by_seq(inputs.ref, list(numbers)) if numbers else []
    entries = [one for one in found if one.seq not in inputs.off and _priority(one) < _LEAVES_FIRST]
    if not entries:
        return ()
    current = store.runs.current_task(inputs.ref, inputs.track)
    tasks = store.runs.tasks(inputs.ref, newest_finished=FINISHED_TASKS) if current is not None else []
    room = inputs.policy.of("pinned") - sum(one.tokens for one in inputs.required.pinned)
    chosen: list[Entry] = []
    for one in sorted(entries, key=lambda one: (_priority(one), -one.seq)):
        if current is not None and task_of([one], tasks) not in (None, current):
            continue
        if _priority(one) == _ALWAYS or one.tokens <= room:
            chosen.append(one)
            room -= one.tokens
    return tuple(one.seq for one in reversed(chosen))


def _by_row(inputs: Inputs) -> dict[int, list[int]]:
    """`seq`s of the newest messages of each row of the matrix, in order.

    Each message is looked at once, whatever its row: many of one row would else hide the few of another.
    """
    cache, ref = inputs.runtime.view_cache, inputs.ref
    name = f"kinds:{inputs.track}"
    known: tuple[int, dict[int, list[int]]] | None = cache.recalled(ref.key, name, ref.epoch)
    last, rows = known if known is not None else (0, {})
    new = inputs.runtime.store.transcript.kinds(ref, track=inputs.track, after=last)
    if not new:
        return rows
    rows = {row: list(seqs) for row, seqs in rows.items()}
    for seq, kind in new:
        if (row := priority_of_kind(kind)) is not None:
            rows.setdefault(row, []).append(seq)
    rows = {row: seqs[-_MOST:] for row, seqs in rows.items()}
    cache.keep_recalled(ref.key, name, ref.epoch, (new[-1][0], rows))
    return rows


def _priority(entry: Entry) -> int:
    return priority_of_kind(entry.kind) or _LEAVES_FIRST
