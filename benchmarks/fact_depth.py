"""What is left of planted facts after thousands of turns and many rounds of condensing, here and elsewhere.

The same conversations, several seeds, are held with this memory and with its peers, each beside the same stand-ins for
a model: one that quotes the most telling sentences (`summariser`), one that rewords what it read and loses a little
each time (`paraphraser`), and one that loses a fifth; this memory with its condenser without a model too, beside a
window and a rule of ten lines. At the end one context of the budget is taken without a question, and then one for each
fact with the question asked. A fact counts where its value stands close to its subject; of a corrected fact only the
last value counts, and an old value shown alone is counted as wrong.

    python -m benchmarks.fact_depth --turns 2000 --seeds 0,1,2 --budget 8000
    python -m benchmarks.fact_depth --talk conversations/ --writers none --plain

The conversations are made up (`conversations`), or real ones with facts planted among what was said, by forms
(`planted_talk`) or as people say them (`plain_facts`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, get_args

from benchmarks.classic_parties import RollingSummary, SummaryBuffer
from benchmarks.conversations import Conversation, PlantedFact, conversation, shown_text
from benchmarks.fact_depth_report import LOSES, PLACES, QUOTES, REWORDS, RULES, Held, report_of
from benchmarks.other_parties import DeepAgents, HermesLcm, RareSentences
from benchmarks.paraphraser import FORGETS, Paraphraser
from benchmarks.parties import Counting, Langmem, Middleware, OurMemory, Party, Trimmed
from benchmarks.plain_facts import PlainList, plain_talk
from benchmarks.planted_talk import planted_talk
from benchmarks.reporting import Report, arguments, finish, show
from benchmarks.summariser import Summariser
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.protocols import TokenCounter

_SUMMARY_SHARE = 0.25
"""Of the budget, that a peer's summary may take."""
_QUESTION = "What do you know about the {s}?"


_LOST = 0.2
"""Chance that the lossy stand-in leaves a fact out of one answer, beside a mild one's `FORGETS`."""
WRITERS = {"rewords": REWORDS, "quotes": QUOTES, "loses": LOSES, "none": RULES}
"""Names of the stand-ins on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to measure."""

    turns: int = 2000
    """Messages of each conversation."""
    seeds: tuple[int, ...] = (0, 1, 2)
    budget: int = 8000
    """Of a context, in tokens."""
    questions: int = 100
    """At most so many facts are asked for, spread over the conversation."""
    forgets: float = FORGETS
    """Chance that the rewording model leaves a fact out of one answer."""
    writers: tuple[str, ...] = tuple(WRITERS)
    talk: Path | None = None
    """A folder of real conversations to plant facts in; `None`: made-up ones."""
    plain: PlainList | None = None
    """The list from which these are, said as people say them, each in words of its own; `None`: by forms."""
    hermes: Path | None = None
    """The checked-out source of hermes-lcm."""
    only_memory: bool = False
    """Leave the peers out."""


def measure(asked: Asked) -> Report:
    """Hold each conversation with every party."""
    counter = best_counter()
    found: list[Held] = []
    for seed in asked.seeds:
        held = _conversation(asked, seed)
        for writer, summariser_of, names in _writers(held, counter, asked, seed=seed):
            for make in names:
                summariser = summariser_of() if summariser_of is not None else None
                party = make(summariser)
                try:
                    found.append(
                        _hold(party, held, counter, summariser, writer=writer, seed=seed, questions=asked.questions)
                    )
                finally:
                    party.close()
    settings = {
        "turns": asked.turns,
        "seeds": list(asked.seeds),
        "budget": asked.budget,
        "forgets": asked.forgets,
        "facts planted in": asked.talk.name if asked.talk else "made-up talk",
        "said plainly": asked.plain or "no",
        "counter": counter.fingerprint,
    }
    absent = {"deepagents": DeepAgents.missing(), "hermes-lcm": HermesLcm.missing(asked.hermes)}
    left_out = [] if asked.only_memory else [f"{name}: left out, {why}" for name, why in absent.items() if why]
    return report_of(found, settings=settings, turns=asked.turns, budget=asked.budget, left_out=left_out)


def _conversation(asked: Asked, seed: int) -> Conversation:
    if asked.talk is None:
        return conversation(asked.turns, seed=seed)
    if asked.plain is None:
        return planted_talk(asked.talk, asked.turns, seed=seed)
    return plain_talk(asked.talk, asked.turns, seed=seed, listed=asked.plain)


def _writers(
    held: Conversation, counter: TokenCounter, asked: Asked, *, seed: int
) -> Iterator[tuple[str, Callable[[], Summariser] | None, list[Callable[[Any], Party]]]]:
    """Each way of writing summaries, and who is held beside it."""
    counting = Counting(counter)
    budget, hermes = asked.budget, asked.hermes
    most = round(_SUMMARY_SHARE * budget)

    def ours(summariser: Summariser | None) -> Party:
        return OurMemory(None, budget, counter=counter, summariser=summariser)

    def rewords(forgets: float) -> Callable[[], Summariser]:
        return lambda: Paraphraser(held, counter=counter, most_tokens=most, seed=seed, forgets=forgets)

    peers: list[Callable[[Any], Party]] = [
        lambda one: Middleware(budget, counting=counting, summariser=one),
        lambda one: SummaryBuffer(budget, counting=counting, summariser=one, summary_tokens=most),
        lambda one: RollingSummary(counting=counting, summariser=one),
        lambda one: Langmem(budget, counting=counting, summariser=one, summary_tokens=most),
    ]
    if DeepAgents.missing() is None:
        peers.append(lambda one: DeepAgents(budget, counting=counting, summariser=one))
    if HermesLcm.missing(hermes) is None:
        peers.append(lambda one: HermesLcm(budget, summariser=one, folder=hermes or Path()))
    rules: list[Callable[[Any], Party]] = [
        lambda _: Trimmed(budget, counting=counting),
        lambda _: RareSentences(budget, counting=counting),
    ]
    if asked.only_memory:
        peers, rules = [], rules[1:]
    made: dict[str, Callable[[], Summariser] | None] = {
        "rewords": rewords(asked.forgets),
        "quotes": lambda: Summariser(held.messages, counter=counter, most_tokens=most, share=1),
        "loses": rewords(_LOST),
        "none": None,
    }
    for name in asked.writers:
        yield WRITERS[name], made[name], [ours, *(rules if name == "none" else peers)]


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
    parser.add_argument("--seeds", default="0,1,2", help="of the conversations, one each")
    parser.add_argument("--budget", type=int, default=8000, help="tokens of one context")
    parser.add_argument("--questions", type=int, default=100, help="facts that are asked for, at most")
    parser.add_argument("--forgets", type=float, default=FORGETS, help="chance that a fact is left out of a summary")
    parser.add_argument("--writers", default=",".join(WRITERS), help="stand-ins for a model")
    parser.add_argument("--talk", type=Path, help="folder of real conversations to plant facts in")
    parser.add_argument(
        "--plain",
        choices=get_args(PlainList),
        nargs="?",
        const="first",
        help="plant facts as people say them, each in its own words: the first list, or a half of the second",
    )
    parser.add_argument("--hermes", type=Path, help="the checked-out source of hermes-lcm")
    parser.add_argument("--only-memory", action="store_true", help="without peers")
    given = parser.parse_args(arguments_given)
    report = measure(
        Asked(
            turns=given.turns,
            seeds=tuple(int(seed) for seed in given.seeds.split(",")),
            budget=given.budget,
            questions=given.questions,
            forgets=given.forgets,
            writers=tuple(given.writers.split(",")),
            talk=given.talk,
            plain=given.plain,
            hermes=given.hermes,
            only_memory=given.only_memory,
        )
    )
    show(report)
    finish([report], given.json)
    return [report]


if __name__ == "__main__":
    main()
