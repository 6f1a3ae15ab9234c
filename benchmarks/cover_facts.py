"""What the cover alone states of the planted facts, without a query: summaries of each level against random sentences.

For each level the summaries of that level are taken by themselves, and beside them sentences of the same messages,
drawn at random until they are as long. Both condensers are measured: the extractive one, and the stand-in for a model.

    python -m benchmarks.cover_facts --messages 1500
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.conversations import Conversation, PlantedFact, conversation, shown_text, stated
from benchmarks.parties import OurMemory
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from benchmarks.summariser import Summariser
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.summaries.rendering import summary_block
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.records import Summary

_LEVELS = (1, 2, 3)
_DRAWS = 5
"""Random selections per level; their mean is compared."""
_LEAST_FACTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One level of one condenser's tree."""

    condenser: str
    level: int
    summaries: int
    tokens: int
    """Of the summaries as a context shows them, facts and headers included."""
    source_tokens: int
    """Of the messages under them."""
    facts: int
    """Planted in these messages, and not corrected in them later."""
    stated: int
    random: float
    """By random sentences of equal size, on average."""


def measure(messages: int = 1500, *, seed: int = 0) -> Report:
    """Condense one conversation twice, and compare each level with random sentences."""
    counter = best_counter()
    held = conversation(messages, seed=seed)
    outcomes: list[Outcome] = []
    summariser = Summariser(held.messages, counter=counter, most_tokens=1000)
    for name, model in (("extractive", None), ("scripted model", summariser)):
        party = OurMemory(None, 8000, counter=counter, summariser=model)
        try:
            session = party.session
            session.add_messages(held.messages, at=[turn.at for turn in held.turns])
            session.flush()
            found = _summaries(party)
        finally:
            party.close()
        for level in _LEVELS:
            mine = [one for one in found if one.level == level]
            if mine:
                outcomes.append(_outcome(name, level, mine, held, counter, seed=seed))
    return _report(outcomes, messages=messages, seed=seed)


def _summaries(party: OurMemory) -> list[Summary]:
    """Every finished summary."""
    store = party.memory.core.runtime.store
    ref = store.transcript.find(party.session.session_id)
    return [one for one in store.tree.all(ref) if one.state.finished] if ref is not None else []


def _outcome(
    condenser: str, level: int, found: Sequence[Summary], held: Conversation, counter: TokenCounter, *, seed: int
) -> Outcome:
    covered = [turn for one in found for turn in held.turns[one.first_seq - 1 : one.last_seq]]
    texts = [summary_block(one) for one in found]
    size = counter.count_text("\n\n".join(texts))
    facts = _holding(held, max(one.last_seq for one in found), {turn.fact for turn in covered if turn.fact})
    said = [sentence for turn in covered for sentence in sentences(str(turn.message.text))]
    drawn = [stated(facts, _drawn(said, size, counter, random.Random(seed + draw))) for draw in range(_DRAWS)]
    return Outcome(
        condenser=condenser,
        level=level,
        summaries=len(found),
        tokens=size,
        source_tokens=counter.count_text(shown_text(turn.message for turn in covered)),
        facts=len(facts),
        stated=stated(facts, "\n\n".join(texts)),
        random=sum(drawn) / len(drawn),
    )


def _holding(held: Conversation, until: int, within: set[PlantedFact]) -> list[PlantedFact]:
    return [fact for fact in held.facts_until(until) if fact in within]


def _drawn(said: Sequence[str], size: int, counter: TokenCounter, chance: random.Random) -> str:
    """Random sentences, in their order, of about `size` tokens."""
    chosen: list[int] = []
    room = size
    for place in chance.sample(range(len(said)), len(said)):
        tokens = counter.count_text(said[place]) + 1
        if tokens > room:
            break
        chosen.append(place)
        room -= tokens
    return "\n".join(said[place] for place in sorted(chosen))


def _report(outcomes: Sequence[Outcome], *, messages: int, seed: int) -> Report:
    rows = [
        (
            f"{one.condenser}, level {one.level}",
            one.summaries,
            one.tokens,
            f"{100 * one.tokens / max(one.source_tokens, 1):.0f} %",
            one.facts,
            _percent(one.stated, one.facts),
            _percent(one.random, one.facts),
        )
        for one in outcomes
    ]
    targets = [
        Target(
            aim=f"{one.condenser}, level {one.level}: more facts than random sentences of equal size",
            measured=f"{_percent(one.stated, one.facts)} and {_percent(one.random, one.facts)}",
            met=one.stated > one.random if one.facts >= _LEAST_FACTS else None,
        )
        for one in outcomes
    ]
    return Report(
        benchmark="facts in the cover",
        about="planted facts that the summaries of one level state, without any query",
        settings={"messages": messages, "seed": seed, "random draws": _DRAWS},
        grids=(
            Grid(
                title="facts stated",
                columns=("", "summaries", "tokens", "of the source", "facts", "stated", "random"),
                rows=tuple(rows),
            ),
        ),
        figures={"levels": [asdict(one) for one in outcomes]},
        targets=tuple(targets),
    )


def _percent(part: float, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--messages", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments_given)
    report = measure(asked.messages, seed=asked.seed)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
