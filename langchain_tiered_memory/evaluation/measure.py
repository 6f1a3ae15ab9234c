"""Runs the memory and the simple methods over a conversation's questions and notes how much evidence each shows.

All see the same text and pay the same prices. The memory is asked with `max_tokens` equal to the budget, and finds a
turn only where the turn's whole text stands in its context; turns of which it shows a passage are noted apart. Where
the turns that it shows whole would cost more than the budget by the common prices (its own framing may be cheaper), it
is asked again with as much less, so that no figure rests on another way of counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.evaluation.baselines import choose, embedded, index_turns
from langchain_tiered_memory.evaluation.pricing import PricedTurns, priced
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.contexts import Context

View: TypeAlias = Literal["recall", "default"]

_ASKED_AFTER_SECONDS = 60.0
"""The questions are asked a minute after the conversation's end."""

_ATTEMPTS = 6
"""How often the memory is asked again with less. What is still above then is counted and reported."""

_SMALLEST_CUT = 8
"""Tokens less at least, each time: a token less rarely changes what is shown."""

VIEWS: tuple[View, ...] = ("recall", "default")
MEMORY_METHODS: dict[View, str] = {"recall": "memory, recall view", "default": "memory, default view"}


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
    price: int
    """Of all turns shown whole, by the common prices."""
    tokens: int | None
    """Of the memory's whole request by its own count; `None` for the other methods."""
    asked: int | None = None
    """`max_tokens` that the memory was given: the budget, or less where its own framing was cheaper than the prices."""
    note: str | None = None
    """Why there is no context."""

    @property
    def overspent(self) -> bool:
        """Whether the memory's request is larger than the budget, by the memory's own count."""
        return self.tokens is not None and self.tokens > self.budget

    @property
    def excess(self) -> int:
        """Tokens by which the turns shown whole cost more than the budget, by the common prices."""
        return max(0, self.price - self.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything about one conversation."""

    conversation: str
    turns: int
    tokens: int
    questions: int
    """That count: their evidence is there."""
    left_out: dict[str, tuple[str, ...]]
    """Reason to ids of questions that cannot count."""
    outcomes: tuple[Outcome, ...]


def countable(conversation: Conversation) -> tuple[Question, ...]:
    """The questions whose evidence the conversation has."""
    return tuple(question for question in conversation.questions if question.left_out is None)


def steps_of(conversation: Conversation) -> int:
    """How many times `measure` will report progress."""
    return 2 * len(countable(conversation))


def measure(
    conversation: Conversation,
    budgets: Sequence[int],
    *,
    counter: TokenCounter,
    embeddings: Embeddings | None,
    on_step: Callable[[], None],
    views: Sequence[View] = VIEWS,
    settings: Settings | None = None,
) -> Measured:
    """Ask every method every countable question of `conversation` at every budget.

    Args:
        conversation: With annotated questions.
        budgets: In tokens.
        counter: Prices turns for all methods alike, and is the memory's own.
        embeddings: For the dense methods and the memory; `None` leaves the dense methods out.
        on_step: Called once per question by the methods, and once by the memory.
        views: Of the memory.
        settings: Of the memory; summaries are made before the questions, in this thread.

    Raises:
        InvalidInputError: when the memory refuses a turn or a question.
    """
    turns = priced(conversation, counter.count_text)
    questions = countable(conversation)
    left_out: dict[str, tuple[str, ...]] = {}
    for question in conversation.questions:
        if question.left_out:
            left_out[question.left_out] = (*left_out.get(question.left_out, ()), question.id)
    note = _Notes(conversation=conversation.id, turns=turns)
    outcomes: list[Outcome] = []
    if questions:
        outcomes += _simple_methods(note, questions, budgets, embeddings=embeddings, on_step=on_step)
        with _opened(conversation, settings or Settings(), counter=counter, embeddings=embeddings) as memory:
            session = memory.session(conversation.id)
            remember(session, conversation)
            for question in questions:
                for view in views:
                    for budget in budgets:
                        shown = _shown(session, turns, question.text, budget=budget, view=view)
                        outcomes.append(note.outcome(question, MEMORY_METHODS[view], budget, shown))
                on_step()
    return Measured(
        conversation=conversation.id,
        turns=len(turns.ids),
        tokens=turns.tokens,
        questions=len(questions),
        left_out=left_out,
        outcomes=tuple(outcomes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """Writes outcomes for one conversation."""

    conversation: str
    turns: PricedTurns

    def outcome(self, question: Question, method: str, budget: int, shown: _Shown) -> Outcome:
        return Outcome(
            conversation=self.conversation,
            question=question.id,
            category=question.category,
            adversarial=question.adversarial,
            method=method,
            budget=budget,
            evidence=len(question.evidence),
            whole=sum(turn_id in shown.whole for turn_id in question.evidence),
            touched=sum(turn_id in shown.whole or turn_id in shown.passages for turn_id in question.evidence),
            price=self.turns.price_of(shown.whole),
            tokens=shown.tokens,
            asked=shown.asked,
            note=shown.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    whole: frozenset[str]
    passages: frozenset[str] = frozenset()
    tokens: int | None = None
    asked: int | None = None
    note: str | None = None


def _simple_methods(
    notes: _Notes,
    questions: Sequence[Question],
    budgets: Sequence[int],
    *,
    embeddings: Embeddings | None,
    on_step: Callable[[], None],
) -> Iterator[Outcome]:
    indexes = index_turns(notes.turns, embeddings)
    vectors = embedded(embeddings, [question.text for question in questions]) if embeddings else None
    for number, question in enumerate(questions):
        vector = None if vectors is None else vectors[number]
        for method, by_budget in choose(indexes, question.text, budgets, vector=vector, seed=number).items():
            for budget, chosen in by_budget.items():
                shown = _Shown(whole=frozenset(notes.turns.ids[index] for index in chosen))
                yield notes.outcome(question, method, budget, shown)
        on_step()


def _opened(
    conversation: Conversation, settings: Settings, *, counter: TokenCounter, embeddings: Embeddings | None
) -> TieredMemory:
    """A memory whose clock stands at the conversation's end, and that works in this thread alone."""
    tree = settings.tree.model_copy(update={"background": False})
    last = conversation.turns[-1].at
    return TieredMemory.open(
        embeddings=embeddings,
        settings=settings.model_copy(update={"tree": tree}),
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


def _shown(session: Session, turns: PricedTurns, question: str, *, budget: int, view: View) -> _Shown:
    """What the memory shows within `budget`, by its own count and by the common prices."""
    asked = budget
    for _ in range(_ATTEMPTS):
        try:
            context: Context = session.context(question, max_tokens=asked, view=view)
        except BudgetError as error:
            return _Shown(whole=frozenset(), tokens=0, asked=asked, note=str(error))
        shown = _Shown(
            whole=frozenset(context.entry_ids),
            passages=frozenset(context.passage_ids),
            tokens=context.tokens,
            asked=asked,
        )
        excess = turns.price_of(shown.whole) - budget
        if excess <= 0:
            break
        asked -= max(excess, _SMALLEST_CUT)
    return shown
