"""What condensing costs and what it keeps: tokens read and written per token of history, model calls, planted facts.

This memory and its peers hold the same conversation with the same stand-in for a model. What the resulting context
states is measured without a query: the summaries and the recent messages alone.

    python -m benchmarks.condensing --messages 1000
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.classic_parties import SummaryBuffer
from benchmarks.conversations import Conversation, conversation, shown_text, stated
from benchmarks.parties import Counting, Langmem, Middleware, OurMemory, Party, Trimmed
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from benchmarks.summariser import Call, Summariser
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.protocols import TokenCounter

_SUMMARY_SHARE = 0.25
"""Of the budget, that a peer's summary may take."""
_MOST_READ = 1.4
_MOST_WRITTEN = 0.6
_CHUNKS_A_CALL = 6
_FITTING = 1_000_000
"""Budget of a window that every history here fits."""
_MOMENTS = 25
"""At which what a context states is looked at, about."""
_JUDGED_FROM = 500  # messages: fewer make no tree
_MESSAGE = re.compile(r"^(<m [^>\n]{1,200}>)(?P<text>[^<]*)", re.MULTILINE)
"""Of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one party took and kept."""

    party: str
    calls: int
    read_tokens: int
    """Of prompts, without their fixed instructions."""
    instruction_tokens: int
    written_tokens: int
    facts_share: float
    """Planted facts that hold and that the context states, of all that hold (0 to 1): a mean over moments of the second
    half of the conversation, for just after a condensation every context is at its smallest."""
    context_tokens: float
    """Of the contexts at these moments, on average."""
    moments: int
    largest_tokens: int
    """Of the largest context on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The summaries of this memory."""

    summaries: int
    chunks: int
    """Of level 1, that the model wrote."""
    condensed_tokens: int
    """Of the messages that they stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """This memory's prompts taken apart, in tokens."""

    sources: int
    framing: int
    """Tags around each source: who said it and when."""
    instructions: int


def measure(messages: int = 1000, *, budget: int = 4000, seed: int = 0) -> Report:
    """Hold a conversation of `messages` messages with every party."""
    counter = best_counter()
    held = conversation(messages, seed=seed)
    history = sum(counter.count_message(message) for message in held.messages)
    most = round(_SUMMARY_SHARE * budget)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        ours = Summariser(held.messages, counter=counter, most_tokens=most)
        mine, made = _our_outcome(path, held, ours, budget, counter)
        outcomes.append(mine)
        again = _calls_after_restart(path, held, budget, counter)
        fitting = _calls_where_it_fits(Path(folder) / "fitting.db", held, counter)
    for party, summariser in _peers(held, budget, counter):
        outcomes.append(_outcome(party, held, summariser, Counting(counter)))
    prompts = _apart(ours.calls, counter)
    return _report(
        outcomes,
        prompts,
        history=history,
        made=made,
        again=again,
        fitting=fitting,
        budget=budget,
        messages=messages,
        seed=seed,
    )


def _peers(held: Conversation, budget: int, counter: TokenCounter) -> list[tuple[Party, Summariser | None]]:
    counting = Counting(counter)
    most = round(_SUMMARY_SHARE * budget)
    models = [Summariser(held.messages, counter=counter, most_tokens=most) for _ in range(3)]
    return [
        (Middleware(budget, counting=counting, summariser=models[0]), models[0]),
        (SummaryBuffer(budget, counting=counting, summariser=models[1], summary_tokens=most), models[1]),
        (Langmem(budget, counting=counting, summariser=models[2], summary_tokens=most), models[2]),
        (Trimmed(budget, counting=counting), None),
    ]


def _our_outcome(
    path: Path, held: Conversation, summariser: Summariser, budget: int, counter: TokenCounter
) -> tuple[Outcome, _Made]:
    party = OurMemory(path, budget, counter=counter, summariser=summariser)
    try:
        outcome = _outcome(party, held, summariser, Counting(counter))
        store = party.memory.core.runtime.store
        ref = store.transcript.find(party.session.session_id)
        found = store.tree.all(ref) if ref is not None else []
        chunks = [one for one in found if one.level == 1 and not one.by_rules]
        condensed = sum(one.source_tokens for one in chunks)
        return outcome, _Made(summaries=len(found), chunks=len(chunks), condensed_tokens=condensed)
    finally:
        party.close()


def _calls_after_restart(path: Path, held: Conversation, budget: int, counter: TokenCounter) -> int:
    summariser = Summariser(held.messages, counter=counter, most_tokens=budget)
    party = OurMemory(path, budget, counter=counter, summariser=summariser)
    try:
        party.session.flush()
        party.context()
        return len(summariser.calls)
    finally:
        party.close()


def _calls_where_it_fits(path: Path, held: Conversation, counter: TokenCounter) -> int:
    summariser = Summariser(held.messages, counter=counter, most_tokens=_FITTING)
    party = OurMemory(path, _FITTING, counter=counter, summariser=summariser)
    try:
        for turn in held.turns:
            party.add(turn.message, turn.at)
        party.context()
        party.session.flush()
        return len(summariser.calls)
    finally:
        party.close()


def _outcome(party: Party, held: Conversation, summariser: Summariser | None, counting: Counting) -> Outcome:
    largest = 0
    shares: list[float] = []
    sizes: list[int] = []
    each = max(2, len(held.turns) // (2 * _MOMENTS) // 2 * 2)
    for number, turn in enumerate(held.turns):
        party.add(turn.message, turn.at)
        if number % 2:
            continue  # a model is called after each message of the user
        sent = party.context()
        largest = max(largest, counting.request(sent))
        if number >= len(held.turns) // 2 and number % each == 0:
            facts = held.facts_until(number + 1)
            shares.append(stated(facts, shown_text(sent)) / max(len(facts), 1))
            sizes.append(counting.request(sent))
    calls = summariser.calls if summariser is not None else []
    fixed = party.fixed_tokens * len(calls)
    return Outcome(
        party=party.name,
        calls=len(calls),
        read_tokens=sum(call.read_tokens for call in calls) - fixed,
        instruction_tokens=fixed,
        written_tokens=sum(call.written_tokens for call in calls),
        facts_share=sum(shares) / len(shares),
        context_tokens=sum(sizes) / len(sizes),
        moments=len(shares),
        largest_tokens=largest,
    )


def _apart(calls: Sequence[Call], counter: TokenCounter) -> _Prompts:
    count = counter.count_text
    read = sources = tags = 0
    for call in calls:
        read += call.read_tokens
        for found in _MESSAGE.finditer(call.prompt):
            text = found["text"]
            sources += count(text)
            tags += count(found[0]) - count(text)
    return _Prompts(sources=sources, framing=tags, instructions=read - sources - tags)


def _report(
    outcomes: Sequence[Outcome],
    prompts: _Prompts,
    *,
    history: int,
    made: _Made,
    again: int,
    fitting: int,
    budget: int,
    messages: int,
    seed: int,
) -> Report:
    mine = outcomes[0]
    condensed = max(made.condensed_tokens, 1)
    read, written = mine.read_tokens / condensed, mine.written_tokens / condensed
    rows = [
        (
            one.party,
            one.calls,
            one.read_tokens / history,
            one.written_tokens / history,
            (one.read_tokens + one.instruction_tokens) / history,
            f"{100 * one.facts_share:.1f} %",
            one.context_tokens,
            "yes" if one.largest_tokens <= budget else f"no, {one.largest_tokens:,}",
        )
        for one in outcomes
    ]
    parts = asdict(prompts)
    enough = messages >= _JUDGED_FROM
    return Report(
        benchmark="condensing",
        about="the same conversation and the same stand-in for a model; contexts without a query",
        settings={"messages": messages, "history tokens": history, "budget": budget, "seed": seed},
        grids=(
            Grid(
                title="tokens per token of history, and planted facts that the contexts state",
                columns=("", "calls", "read", "written", "read, all", "facts", "tokens", "in budget"),
                rows=tuple(rows),
            ),
            Grid(
                title="this memory's prompts, tokens per token of history",
                columns=("", "tokens", "per token"),
                rows=tuple((name, tokens, tokens / history) for name, tokens in parts.items()),
            ),
        ),
        figures={
            "history_tokens": history,
            "parties": [asdict(one) for one in outcomes],
            "prompts": parts,
            "summaries": made.summaries,
            "chunks_by_the_model": made.chunks,
            "condensed_tokens": made.condensed_tokens,
            "calls_after_restart": again,
            "calls_where_it_fits": fitting,
        },
        targets=(
            Target(
                aim=f"condensing reads at most {_MOST_READ} tokens per token of history that the model condensed, "
                "instructions and tags included",
                measured=f"{read:.2f}, of {made.condensed_tokens:,} tokens",
                met=read <= _MOST_READ if enough else None,
            ),
            Target(
                aim=f"and writes at most {_MOST_WRITTEN}",
                measured=f"{written:.2f}",
                met=written <= _MOST_WRITTEN if enough else None,
            ),
            Target(
                aim=f"at most one call for {_CHUNKS_A_CALL} chunks of level 1",
                measured=f"{mine.calls} calls for {made.chunks} of them; {made.summaries} summaries in all",
                met=mine.calls * _CHUNKS_A_CALL <= made.chunks if enough else None,
            ),
            Target(aim="no call where the history fits its window", measured=str(fitting), met=fitting == 0),
            Target(aim="no call after a restart", measured=str(again), met=again == 0),
            Target(
                aim="never over budget",
                measured=f"{mine.largest_tokens:,} of {budget:,}",
                met=mine.largest_tokens <= budget,
            ),
        ),
        remarks=("'read' leaves out the fixed instructions of peers; this memory's are in it.",),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=4000, help="tokens of one context")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments_given)
    report = measure(asked.messages, budget=asked.budget, seed=asked.seed)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
