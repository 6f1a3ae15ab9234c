"""How much room recall is given beside what the user said last, in a conversation that goes on.

Room that is set aside for recall and not used makes a view smaller for nothing: it is condensed sooner, and each
condensation sends it uncached. So what the message brings back is looked up before the view is decided, and recall is
given what that takes, at most a share of the budget that follows from how much the message asks for: nothing beside
small talk, most beside a brief question, and what answers it beside all that is said. The more of the history shares
the words of a brief question, the further down its answer may stand, and the more room it has. A long message says
itself what it is about: beyond what answers it, quotes are worth less than the messages that would make way for them.
So they are beside one that goes on with the assistant's last answer, which stands in the view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.recall.finding import Found, find
from langchain_tiered_memory.recall.judgement import judge, tokens_of
from langchain_tiered_memory.summaries.rendering import recall_block, sitting_header
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import ContextSettings
    from langchain_tiered_memory.types.contexts import Mode
    from langchain_tiered_memory.types.records import Entry, SessionRef


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallBudget:
    """What recall may take beside what the user said last."""

    share: float | None = None
    """Of the budget, at most, though more room may be left: what is said next needs it. `None`: nothing was said."""
    answers: float = 0.0
    """Of the budget, what all that answers it takes, up to a question's share: given where room is left."""
    stands: bool = True
    """Whether what is recalled for it stands in the requests after it: only what was asked for is worth that room."""
    found: Found | None = None
    """What was found for it; `None` where nobody looked."""
    is_late: bool = False
    """Whether it is known only since the view was decided, which left no room for it."""


def set_aside(said: RecallBudget, mode: Mode, settings: ContextSettings, *, rest: int) -> int:
    """Tokens that a view leaves for recall, of the `rest` beside system prompt and tools.

    Work on files needs its room, and has tools to ask for more: it leaves a tenth at most, or the best that answers.
    """
    share = settings.recall_share if said.share is None else min(said.share, settings.recall_share)
    tokens = rest if "recall" in mode else round(share * rest)
    if "files" not in mode or said.share is None:
        return tokens
    best = min(round(said.answers * rest), NUMBERS.answers_tokens)
    return min(tokens, max(round(NUMBERS.recall_at_work_share * rest), best))


def recall_room(inputs: Inputs, *, left: int, beside: int, standing: int, is_repeated: bool) -> int:
    """Tokens that recall takes of those that the view `left`, with what is `beside` it: its frame, registered sections.

    It takes all of them for a query of the caller's own. What the user said has its share, and what answers it in any
    case: what is said next needs the rest. What was recalled for earlier messages (`standing` tokens) gives way only to
    what a question brings. A tool loop keeps to what was set aside; to what answers, too, until that `is_repeated`.
    """
    policy, said = inputs.policy, inputs.recall_budget
    share, answers = (round(one * (policy.total - policy.fixed)) + beside for one in (said.share or 0.0, said.answers))
    if "loop" in policy.mode:
        return min(left, max(policy.recall, share if said.is_late else 0, 0 if is_repeated else answers))
    if said.share is None:
        return left
    if said.share < _of_question(inputs.settings.context) and standing <= left:
        left -= standing
    return min(left, max(share, answers))


def recall_budget_of(
    runtime: Runtime, ref: SessionRef, name: str, required: RequiredMessages, *, total: int, track: str | None
) -> RecallBudget:
    """What recall may take beside the last user message, in a context of `total` tokens.

    In a tool loop as it was when the user spoke. `name` is that of the view's plan, `track` the only one whose messages
    may be found; `None` for all.
    """
    last = required.last_user
    if last is None or not last.text.strip():
        return RecallBudget()
    key = (ref.epoch, last.seq, total)
    place = f"said:{name}"
    kept: RecallBudget | None = runtime.view_cache.recalled(ref.key, place, key)
    if kept is not None:
        return kept
    stored = runtime.store.transcript.kept_view(ref, name)
    plan = ViewPlan.from_json(stored.plan) if stored.plan is not None else None
    if plan is None:  # the newest messages are shown, or all where they fit
        plan = ViewPlan(border=0, tail_from=0 if stored.tokens <= total else required.guard)
    if not (plan.tail_from or plan.masked or plan.left or required.has_other_tracks):
        return RecallBudget(share=0.0)
    found = _found(runtime, ref, last, required, track)
    said = _given(runtime, found, plan, last=last, total=total)
    runtime.view_cache.keep_recalled(ref.key, place, key, said)
    return replace(said, found=found)


def said_beside(inputs: Inputs, plan: ViewPlan) -> RecallBudget:
    """The same where the view was made smaller for this very request: what left it may be what answers."""
    said, last, ref, runtime = inputs.recall_budget, inputs.required.last_user, inputs.ref, inputs.runtime
    if last is None or said.share is None:
        return said
    total = inputs.budget.max_tokens
    found = said.found or _found(runtime, ref, last, inputs.required, inputs.request.only_track)
    given = _given(runtime, found, plan, last=last, total=total)
    if given.share is None or given.share <= said.share:
        return replace(said, found=found)
    runtime.view_cache.keep_recalled(ref.key, f"said:{inputs.name}", (ref.epoch, last.seq, total), given)
    return replace(given, found=found, is_late=True)


def _found(runtime: Runtime, ref: SessionRef, last: Entry, required: RequiredMessages, track: str | None) -> Found:
    """What is found for it; what an agent did since, and any view shows, is not waited for.

    Messages of other tracks, where they may be found, are shown by none.
    """
    filters = SearchFilters(tracks=(track,)) if track is not None else None
    shows_all = track is not None or not required.has_other_tracks
    shown_from = max(required.guard, last.seq) if shows_all else None
    return find(runtime, ref, last.text, filters=filters, asked_at=last.seq, shown_from=shown_from)


def _hidden_by(plan: ViewPlan, found: Found, last: Entry) -> Callable[[int], bool]:
    """Which of the messages found a plan does not show."""
    masked, shown_from = {seq for seq, _ in plan.masked}, min(plan.tail_from, last.seq)

    def is_hidden(seq: int) -> bool:
        entry = found.entries[seq]
        return seq < shown_from or seq in masked or entry.group in plan.left or entry.track != last.track

    return is_hidden


def _given(runtime: Runtime, found: Found, plan: ViewPlan, *, last: Entry, total: int) -> RecallBudget:
    """What is given beside a message for which this was found, as far as the plan of the view does not show it."""
    settings, judged = runtime.settings.context, judge(found, _hidden_by(plan, found, last))
    frame = runtime.counter.count_text("\n".join((recall_block(()), sitting_header(0.0))))

    def share_of(tokens: float) -> float:
        framed = NUMBERS.framed * tokens + frame if tokens else 0.0
        return math.ceil(NUMBERS.share_steps * framed / max(total, 1)) / NUMBERS.share_steps

    whole = _of_question(settings)
    room = max(NUMBERS.small_share, NUMBERS.answers_tokens / max(total, 1))
    answers = share_of(tokens_of(found, judged.answers, most_each=NUMBERS.answers_tokens))
    matching = tokens_of(found, (one.sequence for one in judged.worth_quoting()))
    share = 0.0 if judged.asks == "nothing" else min(whole, NUMBERS.small_share)
    if judged.asks == "a question" and not judged.goes_on:
        share = _most(found, settings, matching=matching / max(total, 1))
    # Summaries that answer it stand beside the quotes, and each day has a line of its own.
    wanted = share_of(matching + settings.shares.level_1_summaries * total) if matching else 0.0
    share = max(min(share, wanted), min(answers, room, whole))
    return RecallBudget(share=share, answers=min(answers, whole), stands=judged.asks == "a question")


def _most(found: Found, settings: ContextSettings, *, matching: float) -> float:
    """The share of a question; `matching` is what matches it, in budgets."""
    whole, brief, long = _of_question(settings), NUMBERS.brief_terms, NUMBERS.long_terms
    terms = len(frozenset[str]().union(*(one.terms for one in found.stretches)))
    if terms <= brief:
        return max(whole, min(matching / NUMBERS.looked_through, NUMBERS.asked_times * whole, settings.recall_share))
    return whole - max(whole - NUMBERS.small_share, 0.0) * min((terms - brief) / (long - brief), 1.0)


def _of_question(settings: ContextSettings) -> float:
    """The share of a question that is neither brief nor long."""
    return min(settings.recall_share, settings.talk_recall_share)
