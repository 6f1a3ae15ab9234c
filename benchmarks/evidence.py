"""Asks a memory a conversation's questions, and notes how much evidence it shows by the prices that all methods pay.

All see the same text. A turn costs the tokens of its line "speaker: text"; the first turn shown of a dated sitting also
costs the line "[date]". The memory is asked with `max_tokens` equal to the budget, and finds a turn only where the
turn's whole text stands in its context; turns of which it shows a passage are noted apart. Where the turns that it
shows whole would cost more than the budget by the common prices (its own framing may be cheaper), it is asked again
with as much less, so that no figure rests on another way of counting.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from benchmarks.asked_conversations import VIEWS, WINDOW, View, countable, opened, remember
from langchain_tiered_memory.display.sheet import plural
from langchain_tiered_memory.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter

_ATTEMPTS = 6
"""How often the memory is asked again with less. What is still above then is counted and reported."""

_SMALLEST_CUT = 8
"""Tokens less at least, each time: a token less rarely changes what is shown."""

Figure: TypeAlias = Literal["all", "fraction", "any", "all_touched", "any_touched"]

FIGURES: dict[Figure, str] = {
    "all": "all evidence in the context",
    "fraction": "share of the evidence in the context",
    "any": "any evidence in the context",
    "all_touched": "all evidence in the context, at least by a passage",
    "any_touched": "any evidence in the context, at least by a passage",
}
"""What can be asked of an outcome. A turn counts where it is shown whole, unless the name says otherwise."""


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


def measure(
    conversation: Conversation,
    budgets: Sequence[int],
    *,
    counter: TokenCounter,
    embeddings: Embeddings | None,
) -> Measured:
    """Ask every countable question of `conversation` at every budget.

    Args:
        conversation: With annotated questions.
        budgets: In tokens.
        counter: Prices turns for all methods alike, and is the memory's own.
        embeddings: The memory's; `None`: it searches by words alone.

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
        with opened(conversation, counter=counter, embeddings=embeddings) as memory:
            session = memory.session(conversation.id)
            remember(session, conversation)
            for question in questions:
                outcomes += [outcome_of(turns, question, WINDOW, budget, whole) for budget, whole in window.items()]
                outcomes += [
                    _of_memory(session, turns, question, budget=budget, view=view)
                    for view in VIEWS
                    for budget in budgets
                ]
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


def _of_memory(session: Session, turns: PricedTurns, question: Question, *, budget: int, view: View) -> Outcome:
    """What the memory shows within `budget`, by its own count and by the common prices."""
    asked = budget
    for _ in range(_ATTEMPTS):
        noted = partial(outcome_of, turns, question, VIEWS[view], budget, asked=asked)
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


def value(outcome: Outcome, figure: Figure) -> float:
    """What `outcome` is worth by `figure`, 0 to 1."""
    match figure:
        case "all":
            return float(outcome.whole == outcome.evidence)
        case "fraction":
            return outcome.whole / outcome.evidence
        case "any":
            return float(outcome.whole > 0)
        case "all_touched":
            return float(outcome.touched == outcome.evidence)
        case "any_touched":
            return float(outcome.touched > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How much was measured in one group of conversations, and whether the memory kept to the budgets."""

    name: str
    conversations: int
    turns: int
    tokens: int
    questions: int
    """In the totals: with resolved evidence, and not adversarial."""
    left_out: dict[str, int]
    """Reason to number of questions that are not in the totals."""
    budgets: tuple[int, ...]
    contexts: int
    """Of the memory."""
    overspent: int
    """Contexts of the memory that are larger than the budget, by its own count."""
    priced_above: int
    """Contexts whose whole turns cost more than the budget by the common prices, even when asked again with less."""
    asked_again: int
    """Contexts that were made again with less, because their whole turns cost more by the common prices."""
    largest_cut: int
    """The most that one of them was given less, in tokens."""
    refused: int
    """Contexts that the memory could not make within the budget."""


def totals_of(name: str, measured: Sequence[Measured]) -> Totals:
    """The counts of one group."""
    outcomes = [outcome for one in measured for outcome in one.outcomes]
    ours = [outcome for outcome in outcomes if outcome.method in VIEWS.values()]
    cuts = [outcome.budget - outcome.asked for outcome in ours if outcome.asked is not None]
    adversarial = {(outcome.conversation, outcome.question) for outcome in outcomes if outcome.adversarial}
    left_out: Counter[str] = Counter()
    for one in measured:
        left_out.update({reason: len(ids) for reason, ids in one.left_out.items()})
    if adversarial:
        left_out["adversarial"] = len(adversarial)
    return Totals(
        name=name,
        conversations=len(measured),
        turns=sum(one.turns for one in measured),
        tokens=sum(one.tokens for one in measured),
        questions=sum(one.questions for one in measured) - len(adversarial),
        left_out=dict(left_out),
        budgets=tuple(sorted({outcome.budget for outcome in outcomes})),
        contexts=len(ours),
        overspent=sum(outcome.overspent for outcome in ours),
        priced_above=sum(outcome.excess > 0 for outcome in ours),
        asked_again=sum(cut > 0 for cut in cuts),
        largest_cut=max(cuts, default=0),
        refused=sum(outcome.note is not None for outcome in ours),
    )


def heading(totals: Totals) -> str:
    """What was measured."""
    counts = ((totals.conversations, "conversation"), (totals.turns, "turn"), (totals.tokens, "token"))
    parts = [plural(count, noun) for count, noun in (*counts, (totals.questions, "question"))]
    out = ", ".join(f"{count} {reason}" for reason, count in totals.left_out.items())
    return f"{totals.name}: {', '.join(parts)}{f' (not in the totals: {out})' if out else ''}"


def honesty(totals: Totals) -> str:
    """Whether the memory kept to the budget: by its own count of the request, and by the common prices."""
    above, refused = totals.overspent + totals.priced_above, totals.refused
    if above or refused:
        return f"Of {totals.contexts} contexts of the memory, {above} were over budget and {refused} could not be made."
    said = f"All {totals.contexts} contexts of the memory kept within their budgets."
    if totals.asked_again:
        said += (
            f" {totals.asked_again} were made again with less (at most {totals.largest_cut} tokens), because their"
            " whole turns cost more by the prices that the other methods pay."
        )
    return said
