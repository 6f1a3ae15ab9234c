"""How much of what is sent per turn is a byte-identical prefix of the last call: what a prompt cache gives back.

The turns of the conversation are below a fiftieth of the budget. Only calls are counted for which the whole history
would not fit any more: before that every method sends everything. Those that keep within the budget are compared with
each other; the whole history is the reference that does not.

    python -m benchmarks.prefix --messages 2000 --budget 8000
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.classic_parties import SummaryBuffer
from benchmarks.conversations import Conversation, conversation
from benchmarks.parties import Counting, Langmem, Middleware, OurMemory, Party, Trimmed, WholeHistory
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from benchmarks.summariser import Summariser
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter

_AIMED_SHARE = 0.9
_TURNS_IN_BUDGET = 50
_SUMMARY_SHARE = 0.25
_LEAST_CALLS = 200
"""Counted calls from which on a run tells something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one party sent."""

    party: str
    calls: int
    """Counted ones."""
    share: float
    """Bytes that the call before had sent alike, of all bytes sent (0 to 1)."""
    mean_share: float
    """The same as a mean over the calls."""
    breaks: int
    """Calls of which less than half was a prefix of the last."""
    sent_bytes: int
    new_bytes: int
    mean_tokens: float
    largest_tokens: int
    condensing_calls: int
    condensing_tokens: int
    """Read and written, instructions included."""
    within_budget: bool


def measure(messages: int = 2000, *, budget: int = 8000, seed: int = 0, embed: bool = False) -> Report:
    """Hold a conversation of `messages` messages with every party; with `embed`, recall uses vectors too."""
    counter = best_counter()
    counting = Counting(counter)
    held = conversation(messages, seed=seed)
    sizes = [counter.count_message(message) for message in held.messages]
    largest_turn = max(one + other for one, other in zip(sizes[::2], sizes[1::2], strict=False))
    outcomes: list[Outcome] = []
    for party, summariser in _parties(held, budget, counter, counting, embed=embed):
        try:
            outcomes.append(_outcome(party, summariser, held, budget, counting))
        finally:
            party.close()
    return _report(outcomes, messages=messages, budget=budget, largest_turn=largest_turn, seed=seed)


def _parties(
    held: Conversation, budget: int, counter: TokenCounter, counting: Counting, *, embed: bool
) -> list[tuple[Party, Summariser | None]]:
    most = round(_SUMMARY_SHARE * budget)
    models = [Summariser(held.messages, counter=counter, most_tokens=most) for _ in range(5)]
    embeddings = resolve_embeddings("auto") if embed else None
    return [
        (OurMemory(None, budget, counter=counter, summariser=models[0]), models[0]),
        (OurMemory(None, budget, counter=counter, summariser=models[1], recall=True, embeddings=embeddings), models[1]),
        (Middleware(budget, counting=counting, summariser=models[2]), models[2]),
        (SummaryBuffer(budget, counting=counting, summariser=models[3], summary_tokens=most), models[3]),
        (Langmem(budget, counting=counting, summariser=models[4], summary_tokens=most), models[4]),
        (Trimmed(budget, counting=counting), None),
        (WholeHistory(), None),
    ]


def _outcome(
    party: Party, summariser: Summariser | None, held: Conversation, budget: int, counting: Counting
) -> Outcome:
    before = b""
    history = sent = alike = breaks = largest = tokens = 0
    shares: list[float] = []
    for number, turn in enumerate(held.turns):
        party.add(turn.message, turn.at)
        history += counting(turn.message)
        if number % 2:
            continue  # a model is called after each message of the user
        context = party.context()
        now = as_bytes(context)
        if history > budget:
            same = shared_prefix(before, now)
            size = counting.request(context)
            sent, alike, tokens, largest = sent + len(now), alike + same, tokens + size, max(largest, size)
            shares.append(same / len(now))
            breaks += 2 * same < len(now)
        before = now
    calls = summariser.calls if summariser is not None else []
    return Outcome(
        party=party.name,
        calls=len(shares),
        share=alike / sent if sent else 0.0,
        mean_share=sum(shares) / len(shares) if shares else 0.0,
        breaks=breaks,
        sent_bytes=sent,
        new_bytes=sent - alike,
        mean_tokens=tokens / len(shares) if shares else 0.0,
        largest_tokens=largest,
        condensing_calls=len(calls),
        condensing_tokens=sum(call.read_tokens + call.written_tokens for call in calls),
        within_budget=largest <= budget,
    )


def as_bytes(messages: Sequence[BaseMessage]) -> bytes:
    """Messages as a provider reads them: role, name and text, in order."""
    parts = (f"{message.type}\x1f{message.name or ''}\x1f{message.text}\x1e" for message in messages)
    return "".join(parts).encode("utf-8", "surrogatepass")


def shared_prefix(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _report(outcomes: Sequence[Outcome], *, messages: int, budget: int, largest_turn: int, seed: int) -> Report:
    mine, peers = outcomes[0], [one for one in outcomes[2:] if one.within_budget]
    best = max(peers, key=lambda one: one.share, default=None)
    enough = mine.calls >= _LEAST_CALLS and largest_turn * _TURNS_IN_BUDGET <= budget
    rows = [
        (
            one.party,
            f"{100 * one.share:.1f} %",
            f"{100 * one.mean_share:.1f} %",
            one.breaks,
            one.new_bytes / max(one.calls, 1),
            one.mean_tokens,
            one.condensing_calls,
            one.condensing_tokens,
            "yes" if one.within_budget else f"no, {one.largest_tokens:,}",
        )
        for one in outcomes
    ]
    return Report(
        benchmark="prefix stability",
        about="bytes of each call that are a prefix of the last, once the whole history does not fit",
        settings={
            "messages": messages,
            "budget": budget,
            "counted calls": mine.calls,
            "largest turn": largest_turn,
            "seed": seed,
        },
        grids=(
            Grid(
                title="share of what is sent that the last call sent alike",
                columns=(
                    "",
                    "share",
                    "mean",
                    "breaks",
                    "new bytes",
                    "tokens",
                    "condensing calls",
                    "its tokens",
                    "in budget",
                ),
                rows=tuple(rows),
            ),
        ),
        figures={"largest_turn_tokens": largest_turn, "parties": [asdict(one) for one in outcomes]},
        targets=(
            Target(
                aim=f"at least {100 * _AIMED_SHARE:.0f} % where a turn is under a fiftieth of the budget",
                measured=f"{100 * mine.share:.1f} % (turns of at most {largest_turn} tokens, budget {budget:,})",
                met=mine.share >= _AIMED_SHARE if enough else None,
            ),
            Target(
                aim="above every peer that keeps within the budget",
                measured=f"{100 * mine.share:.2f} %, {best.party} {100 * best.share:.2f} %" if best else "no peer",
                met=best is not None and mine.share > best.share if enough else None,
            ),
        ),
        remarks=("With recall, quotes that depend on what was said take up to a quarter of the budget.",),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=8000, help="tokens of one context")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--embed", action="store_true", help="recall by vectors too, where the model is at hand")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.messages, budget=asked.budget, seed=asked.seed, embed=asked.embed)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
