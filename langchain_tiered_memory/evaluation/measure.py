"""Asks a memory a conversation's questions, and notes how much evidence it shows beside a window of the latest turns.

Both see the same text and pay the same prices. A turn costs the tokens of its line "speaker: text"; the first turn
shown of a dated sitting also costs the line "[date]". The memory is asked with `max_tokens` equal to the budget, and
finds a turn only where the turn's whole text stands in its context; turns of which it shows a passage are noted apart.
Where the turns that it shows whole would cost more than the budget by the common prices (its own framing may be
cheaper), it is asked again with as much less, so that no figure rests on another way of counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter

View: TypeAlias = Literal["recall", "default"]

_ASKED_AFTER_SECONDS = 60.0
"""The questions are asked a minute after the conversation's end."""

_ATTEMPTS = 6
"""How often the memory is asked again with less. What is still above then is counted and reported."""

_SMALLEST_CUT = 8
"""Tokens less at least, each time: a token less rarely changes what is shown."""

MEMORY_METHODS: dict[View, str] = {"recall": "memory, recall view", "default": "memory, default view"}
WINDOW: Final = "last-k window"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTurns:
    """A conversation's lines with prices, by index."""

    conversation: str
    ids: tuple[str, ...]
    lines: tuple[str, ...]
    """`speaker: text`."""
    costs: tuple[int, ...]
    """Tokens of each line."""
    sittings: tuple[int, ...]
    """Of each turn, the index of its sitting."""
    header_costs: tuple[int, ...]
    """Tokens of each sitting's date line."""

    @property
    def tokens(self) -> int:
        """The whole conversation's price."""
        return sum(self.costs) + sum(self.header_costs)

    def price(self, indexes: Collection[int]) -> int:
        """What showing exactly these turns costs, with their date lines."""
        return sum(self.costs[i] for i in indexes) + sum(
            self.header_costs[s] for s in {self.sittings[i] for i in indexes}
        )

    def price_of(self, turn_ids: Collection[str]) -> int:
        """What showing exactly the turns of these ids costs; ids of other things are free."""
        return self.price([index for index, turn_id in enumerate(self.ids) if turn_id in turn_ids])

    def window(self, max_tokens: int) -> set[int]:
        """The longest end of the conversation that fits."""
        taken: set[int] = set()
        for index in reversed(range(len(self.ids))):
            if self.price(taken | {index}) > max_tokens:
                break
            taken.add(index)
        return taken


def priced(conversation: Conversation, count_text: Callable[[str], int]) -> PricedTurns:
    """`conversation` with prices by `count_text`."""
    lines = tuple(f"{turn.speaker}: {turn.text}" for turn in conversation.turns)
    return PricedTurns(
        conversation=conversation.id,
        ids=tuple(turn.id for turn in conversation.turns),
        lines=lines,
        costs=tuple(count_text(f"{line}\n") for line in lines),
        sittings=tuple(turn.sitting for turn in conversation.turns),
        header_costs=tuple(count_text(f"[{sitting.date}]\n") for sitting in conversation.sittings),
    )


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
    return len(countable(conversation))


def measure(
    conversation: Conversation,
    budgets: Sequence[int],
    *,
    counter: TokenCounter,
    embeddings: Embeddings | None,
    on_step: Callable[[], None],
) -> Measured:
    """Ask every countable question of `conversation` at every budget.

    Args:
        conversation: With annotated questions.
        budgets: In tokens.
        counter: Prices turns for all methods alike, and is the memory's own.
        embeddings: The memory's; `None`: it searches by words alone.
        on_step: Called once per question.

    Raises:
        InvalidInputError: when the memory refuses a turn or a question.
    """
    turns = priced(conversation, counter.count_text)
    questions = countable(conversation)
    left_out: dict[str, tuple[str, ...]] = {}
    for question in conversation.questions:
        if question.left_out:
            left_out[question.left_out] = (*left_out.get(question.left_out, ()), question.id)
    outcomes: list[Outcome] = []
    if questions:
        window = {budget: frozenset(turns.ids[index] for index in turns.window(budget)) for budget in budgets}
        with _opened(conversation, counter=counter, embeddings=embeddings) as memory:
            session = memory.session(conversation.id)
            remember(session, conversation)
            for question in questions:
                outcomes += [outcome_of(turns, question, WINDOW, budget, whole) for budget, whole in window.items()]
                outcomes += [
                    _of_memory(session, turns, question, budget=budget, view=view)
                    for view in MEMORY_METHODS
                    for budget in budgets
                ]
                on_step()
    return Measured(
        conversation=conversation.id,
        turns=len(turns.ids),
        tokens=turns.tokens,
        questions=len(questions),
        left_out=left_out,
        outcomes=tuple(outcomes),
    )


def outcome_of(
    turns: PricedTurns,
    question: Question,
    method: str,
    budget: int,
    whole: frozenset[str],
    *,
    passages: frozenset[str] = frozenset(),
    tokens: int | None = None,
    asked: int | None = None,
    note: str | None = None,
) -> Outcome:
    """What showing the turns `whole`, and of others `passages`, is for a question."""
    return Outcome(
        conversation=turns.conversation,
        question=question.id,
        category=question.category,
        adversarial=question.adversarial,
        method=method,
        budget=budget,
        evidence=len(question.evidence),
        whole=sum(turn_id in whole for turn_id in question.evidence),
        touched=sum(turn_id in whole or turn_id in passages for turn_id in question.evidence),
        price=turns.price_of(whole),
        tokens=tokens,
        asked=asked,
        note=note,
    )


def _opened(conversation: Conversation, *, counter: TokenCounter, embeddings: Embeddings | None) -> TieredMemory:
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


def _of_memory(session: Session, turns: PricedTurns, question: Question, *, budget: int, view: View) -> Outcome:
    """What the memory shows within `budget`, by its own count and by the common prices."""
    asked = budget
    for _ in range(_ATTEMPTS):
        noted = partial(outcome_of, turns, question, MEMORY_METHODS[view], budget, asked=asked)
        try:
            context = session.context(question.text, max_tokens=asked, view=view)
        except BudgetError as error:
            return noted(frozenset(), tokens=0, note=str(error))
        whole, passages = frozenset(context.entry_ids), frozenset(context.passage_ids)
        outcome = noted(whole, passages=passages, tokens=context.tokens)
        if not outcome.excess:
            break
        asked -= max(outcome.excess, _SMALLEST_CUT)
    return outcome
