"""Asks a memory the annotated questions of conversations, and tells how much of the evidence its contexts show.

Beside its views stands the plainest memory there is: a window of the latest messages, within the same budget and by the
same counter. A turn counts where its whole text stands in the context; turns of which a passage is shown count apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from langchain_tiered_memory.display.sheet import Words, plural, table
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.display.sheet import Block
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter

View: TypeAlias = Literal["recall", "default"]

VIEWS: dict[View, str] = {"recall": "memory, recall view", "default": "memory, default view"}
WINDOW: Final = "last-k window"
_ASKED_AFTER_SECONDS = 60.0
"""The questions are asked a minute after the conversation's end."""
_OVERALL = "overall"
_OF_INTERVAL = 1.96
"""Standard errors on each side of a mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one method showed for one question within one budget."""

    conversation: str
    question: str
    category: str
    adversarial: bool
    method: str
    budget: int
    evidence: int
    """Turns that an answer needs."""
    whole: int
    """Of these, turns shown whole."""
    touched: int
    """Of these, turns shown whole or by a passage."""
    note: str | None = None
    """Why there is no context."""


FIGURES: dict[str, Callable[[Outcome], float]] = {
    "all evidence in the context": lambda one: one.whole == one.evidence,
    "all evidence in the context, at least by a passage": lambda one: one.touched == one.evidence,
    "share of the evidence in the context": lambda one: one.whole / one.evidence,
}
"""What can be asked of an outcome: 0 to 1."""
_FIRST = next(iter(FIGURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One group of conversations, added up: shares of questions are 0 to 1."""

    name: str
    conversations: int
    turns: int
    questions: int
    """In the totals: with resolved evidence, and not adversarial."""
    left_out: dict[str, int]
    """Reason to number of questions that are not in the totals."""
    budgets: tuple[int, ...]
    shares: dict[str, dict[str, dict[str, dict[int, float]]]]
    """Overall and by category (also of categories that are not in the totals): by figure, method and budget."""
    above_window: dict[str, dict[int, tuple[float, float]]]
    """By view and budget: how much more questions have all evidence in the context than in the window, and half of the
    95 % interval of that."""
    refused: int
    """Contexts that the memory could not make within the budget."""


def countable(conversation: Conversation) -> tuple[Question, ...]:
    """The questions whose evidence the conversation has: `measure` reports its progress for each."""
    return tuple(question for question in conversation.questions if question.left_out is None)


def measure(
    conversation: Conversation,
    budgets: Sequence[int],
    *,
    counter: TokenCounter,
    embeddings: Embeddings | None,
    on_step: Callable[[], None],
) -> list[Outcome]:
    """Ask every countable question of `conversation` at every budget, in tokens.

    Raises:
        InvalidInputError: when the memory refuses a turn or a question.
    """
    questions, outcomes = countable(conversation), list[Outcome]()
    if not questions:
        return outcomes
    windows = {budget: _window(conversation, counter, budget) for budget in budgets}
    with opened(conversation, counter=counter, embeddings=embeddings) as memory:
        session = memory.session(conversation.id)
        remember(session, conversation)
        for question in questions:
            for budget in budgets:
                outcomes.append(_outcome(conversation, question, WINDOW, budget, windows[budget]))
                outcomes += [_of_memory(session, conversation, question, budget=budget, view=view) for view in VIEWS]
            on_step()
    return outcomes


def _window(conversation: Conversation, counter: TokenCounter, budget: int) -> frozenset[str]:
    """The longest end of a conversation that fits."""
    taken: list[str] = []
    for turn in reversed(conversation.turns):
        budget -= counter.count_message(turn.message)
        if budget < 0:
            break
        taken.append(turn.id)
    return frozenset(taken)


def _of_memory(session: Session, asked: Conversation, question: Question, *, budget: int, view: View) -> Outcome:
    try:
        context = session.context(question.text, max_tokens=budget, view=view)
    except BudgetError as error:
        return _outcome(asked, question, VIEWS[view], budget, frozenset(), note=str(error))
    passages = frozenset(context.passage_ids)
    return _outcome(asked, question, VIEWS[view], budget, frozenset(context.entry_ids), passages=passages)


def _outcome(
    asked: Conversation,
    question: Question,
    method: str,
    budget: int,
    whole: frozenset[str],
    *,
    passages: frozenset[str] = frozenset(),
    note: str | None = None,
) -> Outcome:
    return Outcome(
        conversation=asked.id,
        question=question.id,
        category=question.category,
        adversarial=question.adversarial,
        method=method,
        budget=budget,
        evidence=len(question.evidence),
        whole=len(whole.intersection(question.evidence)),
        touched=len((whole | passages).intersection(question.evidence)),
        note=note,
    )


def opened(conversation: Conversation, *, counter: TokenCounter, embeddings: Embeddings | None) -> TieredMemory:
    """A memory whose clock stands at the conversation's end, and that works in this thread alone."""
    last = conversation.turns[-1].at
    return TieredMemory.open(
        embeddings=embeddings,
        settings=Settings(tree=TreeSettings(background=False)),
        token_counter=counter,
        clock=(lambda: last.timestamp() + _ASKED_AFTER_SECONDS) if last else None,
    )


def remember(session: Session, conversation: Conversation) -> None:
    """Put a whole conversation into `session` and finish all summaries and vectors.

    Raises:
        InvalidInputError: when the memory refuses a turn.
    """
    dated = all(turn.at for turn in conversation.turns)
    times = [turn.at for turn in conversation.turns if turn.at] if dated else None
    session.add_messages([turn.message for turn in conversation.turns], at=times)
    session.flush()


def added_up(name: str, conversations: Sequence[Conversation], outcomes: Sequence[Outcome]) -> Evidence:
    """Everything about one group of conversations, from what was measured in them."""
    asked = [question for one in conversations for question in one.questions]
    out = [question.left_out or ("adversarial" if question.adversarial else None) for question in asked]
    by_set: dict[str, dict[tuple[str, int], list[Outcome]]] = {}
    for one in outcomes:
        for of in (one.category,) if one.adversarial else (_OVERALL, one.category):
            by_set.setdefault(of, {}).setdefault((one.method, one.budget), []).append(one)
    overall = by_set.get(_OVERALL, {})
    above: dict[str, dict[int, tuple[float, float]]] = {}
    for (method, budget), mine in overall.items():
        if method != WINDOW:
            beside = zip(mine, overall[WINDOW, budget], strict=True)
            changes = [float(FIGURES[_FIRST](one)) - FIGURES[_FIRST](other) for one, other in beside]
            error = stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else 0.0
            above.setdefault(method, {})[budget] = fmean(changes), _OF_INTERVAL * error
    return Evidence(
        name=name,
        conversations=len(conversations),
        turns=sum(len(one.turns) for one in conversations),
        questions=out.count(None),
        left_out=dict(Counter(reason for reason in out if reason is not None)),
        budgets=tuple(sorted({one.budget for one in outcomes})),
        shares={of: {figure: _shares(found, FIGURES[figure]) for figure in FIGURES} for of, found in by_set.items()},
        above_window=above,
        refused=sum(one.note is not None for one in outcomes),
    )


def _shares(
    columns: Mapping[tuple[str, int], Sequence[Outcome]], value: Callable[[Outcome], float]
) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for (method, budget), outcomes in columns.items():
        found.setdefault(method, {})[budget] = fmean(map(value, outcomes))
    return found


def blocks_of(evidence: Evidence) -> Iterator[Block]:
    """What to tell of one group of conversations, from top to bottom."""
    counts = ((evidence.conversations, "conversation"), (evidence.turns, "turn"), (evidence.questions, "question"))
    said = ", ".join(plural(count, noun) for count, noun in counts)
    out = ", ".join(f"{count} {reason}" for reason, count in evidence.left_out.items())
    yield Words(text=f"{evidence.name}: {said}{f' (not in the totals: {out})' if out else ''}")
    if not evidence.questions:
        yield Words(text="No question has evidence that can be looked for.")
        return

    def rows(title: str, cells: Mapping[str, Mapping[int, str]]) -> Block:
        named = [(name, *(row[budget] for budget in evidence.budgets)) for name, row in cells.items()]
        return table(title, ("", *(f"{budget:,}" for budget in evidence.budgets)), named)

    for figure, shares in evidence.shares[_OVERALL].items():
        yield rows(f"{figure}, %", _percent(shares))
    above = {
        view: {budget: f"{100 * mean:+.1f} ±{100 * half:.1f}" for budget, (mean, half) in by_budget.items()}
        for view, by_budget in evidence.above_window.items()
    }
    yield rows("points of all evidence above the window", above)
    recall = VIEWS["recall"]
    by_category = {of: found[_FIRST][recall] for of, found in evidence.shares.items() if of != _OVERALL}
    if len(by_category) > 1:
        yield rows(f"{_FIRST}, {recall}, %", _percent(by_category))
    if evidence.refused:
        yield Words(text=f"{plural(evidence.refused, 'context')} could not be made within the budget.")


def _percent(shares: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, str]]:
    return {name: {budget: f"{100 * share:.1f}" for budget, share in row.items()} for name, row in shares.items()}
