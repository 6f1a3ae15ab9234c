"""What is left of planted facts after thousands of turns and many rounds of condensing, here and elsewhere.

The same made-up conversations, several seeds, are held with this memory and with its peers, each beside the same two
stand-ins for a model: one that quotes the most telling sentences (`summariser`), and one that rewords what it read and
loses a little each time (`paraphraser`); this memory with its condenser without a model too. At the end one context of
the budget is taken without a question, and then one for each fact with the question asked. A fact counts where its
value stands close to its subject; of a corrected fact only the last value counts, and an old value shown alone is
counted as wrong.

    python -m benchmarks.fact_depth --turns 2000 --seeds 3 --budget 8000
"""

from __future__ import annotations

import time
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.classic_parties import RollingSummary, SummaryBuffer
from benchmarks.conversations import Conversation, PlantedFact, conversation, shown_text
from benchmarks.fact_depth_report import PLACES, QUOTES, REWORDS, RULES, Held, report_of
from benchmarks.paraphraser import FORGETS, Paraphraser
from benchmarks.parties import Counting, Langmem, Middleware, OurMemory, Party, Trimmed
from benchmarks.reporting import Report, arguments, finish, show
from benchmarks.summariser import Summariser
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.protocols import TokenCounter

_SUMMARY_SHARE = 0.25
"""Of the budget, that a peer's summary may take."""
_QUESTION = "What do you know about the {s}?"


def measure(
    turns: int = 2000, *, seeds: int = 3, budget: int = 8000, questions: int = 100, forgets: float = FORGETS
) -> Report:
    """Hold `seeds` conversations of `turns` messages with every party.

    Args:
        turns: Messages of each.
        seeds: How many.
        budget: Of a context, in tokens.
        questions: At most so many facts are asked for, spread over the conversation.
        forgets: Chance that the rewording model leaves a fact out of one answer.
    """
    counter = best_counter()
    found: list[Held] = []
    for seed in range(seeds):
        held = conversation(turns, seed=seed)
        for writer, summariser_of, names in _writers(held, counter, budget, seed=seed, forgets=forgets):
            for make in names:
                summariser = summariser_of() if summariser_of is not None else None
                party = make(summariser)
                try:
                    found.append(_hold(party, held, counter, summariser, writer=writer, seed=seed, questions=questions))
                finally:
                    party.close()
    settings = {"turns": turns, "seeds": seeds, "budget": budget, "forgets": forgets, "counter": counter.fingerprint}
    return report_of(found, settings=settings, turns=turns, budget=budget)


def _writers(
    held: Conversation, counter: TokenCounter, budget: int, *, seed: int, forgets: float
) -> Iterator[tuple[str, Callable[[], Summariser] | None, list[Callable[[Any], Party]]]]:
    """Each way of writing summaries, and who is held beside it."""
    counting = Counting(counter)
    most = round(_SUMMARY_SHARE * budget)

    def ours(summariser: Summariser | None) -> Party:
        return OurMemory(None, budget, counter=counter, summariser=summariser)

    def rewords() -> Summariser:
        return Paraphraser(held, counter=counter, most_tokens=most, seed=seed, forgets=forgets)

    peers: list[Callable[[Any], Party]] = [
        lambda one: Middleware(budget, counting=counting, summariser=one),
        lambda one: SummaryBuffer(budget, counting=counting, summariser=one, summary_tokens=most),
        lambda one: RollingSummary(counting=counting, summariser=one),
        lambda one: Langmem(budget, counting=counting, summariser=one, summary_tokens=most),
    ]
    yield REWORDS, rewords, [ours, *peers]
    yield QUOTES, lambda: Summariser(held.messages, counter=counter, most_tokens=most, share=1), [ours, *peers]
    yield RULES, None, [ours, lambda _: Trimmed(budget, counting=counting)]


def _hold(
    party: Party,
    held: Conversation,
    counter: TokenCounter,
    summariser: Summariser | None,
    *,
    writer: str,
    seed: int,
    questions: int,
) -> Held:
    began = time.perf_counter()
    counting = Counting(counter)
    for number, turn in enumerate(held.turns):
        party.add(turn.message, turn.at)
        if number % 2 == 0:
            party.context()  # a model is called after each message of the user
    context = party.context()
    seconds = time.perf_counter() - began
    facts = held.facts_until(len(held.turns))
    text = shown_text(context).casefold()
    asked: float | None = None
    largest: int | None = None
    levels = 0
    if isinstance(party, OurMemory):
        asked, largest = _asked(party, facts[:: max(1, len(facts) // questions)], counting)
        levels = sum(level.summaries > 0 for level in party.session.metrics().levels)
    calls = summariser.calls if summariser is not None else []
    return Held(
        party=party.name,
        writer=writer,
        seed=seed,
        facts=len(facts),
        stated=_shares(facts, text, turns=len(held.turns)),
        asked=asked,
        wrong=_wrong(held, facts, text),
        tokens=counting.request(context),
        asked_tokens=largest,
        calls=len(calls),
        read_tokens=sum(call.read_tokens for call in calls),
        written_tokens=sum(call.written_tokens for call in calls),
        levels=levels,
        seconds=seconds,
    )


def _asked(party: OurMemory, facts: Sequence[PlantedFact], counting: Counting) -> tuple[float, int]:
    hits, largest = 0, 0
    for fact in facts:
        sent = party.ask(_QUESTION.format(s=fact.subject))
        hits += fact.stated_in(shown_text(sent).casefold())
        largest = max(largest, counting.request(sent))
    return hits / len(facts), largest


def _shares(facts: Sequence[PlantedFact], text: str, *, turns: int) -> dict[str, float]:
    """Of a group without facts there is nothing to state, and it is left out."""
    groups: dict[str, list[bool]] = {}
    for fact in facts:
        place = PLACES[min(fact.number * len(PLACES) // turns, len(PLACES) - 1)]
        shown = fact.stated_in(text)
        for group in ("all", fact.kind, place):
            groups.setdefault(group, []).append(shown)
    return {group: mean(shown) for group, shown in groups.items()}


def _wrong(held: Conversation, facts: Sequence[PlantedFact], text: str) -> float:
    old: dict[str, list[PlantedFact]] = {}
    for turn in held.turns:
        if turn.fact is not None:
            old.setdefault(turn.fact.subject, []).append(turn.fact)
    corrected = [fact for fact in facts if fact.kind == "correction"]
    wrong = [
        any(before.stated_in(text) for before in old[fact.subject] if before.value != fact.value)
        and not fact.stated_in(text)
        for fact in corrected
    ]
    return mean(wrong) if wrong else 0.0


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=2000, help="messages of each conversation")
    parser.add_argument("--seeds", type=int, default=3, help="conversations")
    parser.add_argument("--budget", type=int, default=8000, help="tokens of one context")
    parser.add_argument("--questions", type=int, default=100, help="facts that are asked for, at most")
    parser.add_argument("--forgets", type=float, default=FORGETS, help="chance that a fact is left out of a summary")
    asked = parser.parse_args(arguments_given)
    report = measure(
        asked.turns, seeds=asked.seeds, budget=asked.budget, questions=asked.questions, forgets=asked.forgets
    )
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
