"""How much of what is condensed a view tells of: at several budgets, at every turn of each conversation and run.

A message counts as told where a summary that stands for it is in the view, at whichever resolution, or where it stands
there itself. What is not condensed yet and named in a line alone is counted beside it. Without any path the sample
that comes with the package is played.

    python -m benchmarks.cover_shares conversations/ transcripts/ --every 10
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.reporting import Grid, Report, Target, arguments, finish, numbers, show
from langchain_tiered_memory.conversations import read_conversations, sample_conversation
from langchain_tiered_memory.errors import BudgetError, InvalidInputError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import CondensationSettings, Settings, TreeSettings

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.conversations import Conversation
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

BUDGETS = (4000, 8000, 16000, 32000)
_LOOKED_BACK = 400
"""Messages before the last known summary among which one may have been finished late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What is added to one session."""

    name: str
    group: str
    messages: tuple[BaseMessage, ...]
    times: tuple[dt.datetime | float | None, ...]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The views of one group at one budget, with a question or without."""

    group: str
    budget: int
    asked: bool
    views: int = 0
    condensed: int = 0
    """Messages under a finished summary, added up over the views; so are the following."""
    told: int = 0
    messages: int = 0
    lines: int = 0
    """Messages that are named in a line and told of by nothing."""
    below: int = 0
    """Views that leave out something condensed."""
    worst: float = 1.0
    worst_at: str = ""
    refused: int = 0
    history_tokens: int = 0
    tokens: int = 0

    @property
    def share(self) -> float:
        """Of the condensed messages, that are told."""
        return self.told / self.condensed if self.condensed else 1.0


@dataclass(slots=True)
class _Tree:
    """Which messages each summary stands for, as bits by their numbers."""

    session: Session
    of_summary: dict[str, int] = field(default_factory=dict)
    seq_of: dict[str, int] = field(default_factory=dict)
    condensed: int = 0
    last_seq: int = 0

    def refresh(self) -> None:
        """Take up what was condensed since."""
        tree = self.session.core.runtime.store.tree
        ref = self.session.core.runtime.store.transcript.find(self.session.session_id)
        if ref is None:
            return
        after = max(self.last_seq - _LOOKED_BACK, 0)
        for one in tree.level_1_between(ref, after=after, up_to=len(self.seq_of)):
            bits = sum(1 << self.seq_of[source] for source in one.sources)
            self.of_summary[one.id] = bits
            self.condensed |= bits
            self.last_seq = max(self.last_seq, one.last_seq)

    def told_by(self, summary_ids: Sequence[str]) -> int:
        """Messages that these summaries stand for."""
        told = 0
        for one in summary_ids:
            told |= self._bits(one)
        return told

    def _bits(self, summary_id: str) -> int:
        if summary_id not in self.of_summary:
            store = self.session.core.runtime.store
            ref = store.transcript.find(self.session.session_id)
            found = store.tree.by_id(ref, [summary_id]) if ref is not None else []
            self.of_summary[summary_id] = self.told_by(found[0].sources) if found else 0
        return self.of_summary[summary_id]


def play(played: Played, *, budgets: Sequence[int], every: int, asked: Sequence[bool]) -> list[Outcome]:
    """Add the messages one after the other, and look at a view of each kind after each `every` of them."""
    settings = Settings(
        tree=TreeSettings(background=False),
        condensation=CondensationSettings(max_calls_per_minute=None, foreground_seconds=600),
    )
    outcomes = {
        (budget, ask): Outcome(group=played.group, budget=budget, asked=ask) for budget in budgets for ask in asked
    }
    with TieredMemory.open(None, embeddings=None, token_counter=best_counter(), settings=settings) as memory:
        session = memory.session(played.name)
        tree = _Tree(session)
        for start in range(0, len(played.messages), every):
            batch = played.messages[start : start + every]
            times = [at for at in played.times[start : start + every] if at is not None]
            ids = session.add_messages(batch, at=times if len(times) == len(batch) else None)
            for seq, one in enumerate(ids, start + 1):
                tree.seq_of[one] = seq
            session.flush()
            tree.refresh()
            for (budget, ask), outcome in outcomes.items():
                _look(session, tree, outcome, ask=ask, budget=budget, name=f"{played.name}, {start + len(batch)}")
    return list(outcomes.values())


def _look(session: Session, tree: _Tree, outcome: Outcome, *, ask: bool, budget: int, name: str) -> None:
    try:
        context = session.context(None if ask else "", max_tokens=budget)
    except BudgetError:
        outcome.refused += 1
        return
    told = _told(tree, context)
    condensed = tree.condensed.bit_count()
    count = (told & tree.condensed).bit_count()
    history = context.section("history")
    outcome.views += 1
    outcome.messages += len(tree.seq_of)
    outcome.condensed += condensed
    outcome.told += count
    outcome.lines += history.not_shown if history is not None else 0
    outcome.history_tokens += history.tokens if history is not None else 0
    outcome.tokens += context.tokens
    outcome.below += count < condensed
    if condensed and count / condensed < outcome.worst:
        outcome.worst, outcome.worst_at = count / condensed, name


def _told(tree: _Tree, context: Context) -> int:
    """Messages that a view tells of, recall left aside: it depends on the question."""
    told = 0
    for section in context.sections:
        if section.name == "recall":
            continue
        told |= tree.told_by(section.summary_ids)
        for one in (*section.entry_ids, *section.passage_ids):
            told |= 1 << tree.seq_of[one]
    return told


def measure(
    paths: Sequence[Path] = (),
    *,
    budgets: Sequence[int] = BUDGETS,
    every: int = 1,
    asked: Sequence[bool] = (False, True),
) -> Report:
    """Play every conversation and transcript under `paths`.

    Raises:
        InvalidInputError: when there is none.
    """
    groups: dict[tuple[str, int, bool], Outcome] = {}
    for played in _all_played(paths):
        for one in play(played, budgets=budgets, every=every, asked=asked):
            key = (one.group, one.budget, one.asked)
            groups[key] = _together(groups[key], one) if key in groups else one
    return _report(list(groups.values()), every=every)


def _together(one: Outcome, other: Outcome) -> Outcome:
    worst = min((one, other), key=lambda part: part.worst)
    return Outcome(
        group=one.group,
        budget=one.budget,
        asked=one.asked,
        views=one.views + other.views,
        condensed=one.condensed + other.condensed,
        told=one.told + other.told,
        messages=one.messages + other.messages,
        lines=one.lines + other.lines,
        below=one.below + other.below,
        worst=worst.worst,
        worst_at=worst.worst_at,
        refused=one.refused + other.refused,
        history_tokens=one.history_tokens + other.history_tokens,
        tokens=one.tokens + other.tokens,
    )


def _all_played(paths: Sequence[Path]) -> Iterator[Played]:
    if not paths:
        yield _conversation_of(sample_conversation(), "sample")
        return
    found = False
    for path in paths:
        for folder in sorted({one.parent for one in path.rglob("*.json")} if path.is_dir() else {path}):
            for played in _of_folder(folder):
                found = True
                yield played
    if not found:
        msg = f"no conversation and no transcript under {', '.join(map(str, paths))}"
        raise InvalidInputError(msg)


def _of_folder(folder: Path) -> Iterator[Played]:
    if folder.is_dir() and any(folder.glob("*.probes.json")):
        for run in read_transcripts(folder):
            yield Played(name=run.name, group=folder.name, messages=run.messages, times=run.times)
        return
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else [folder]:
        try:
            conversations = read_conversations(path)
        except InvalidInputError:
            continue  # figures and lists stand beside the conversations
        for one in conversations:
            yield _conversation_of(one, folder.name if folder.is_dir() else path.stem)


def _conversation_of(conversation: Conversation, group: str) -> Played:
    turns = list(conversation.turns)
    return Played(
        name=conversation.id,
        group=group,
        messages=tuple(turn.message for turn in turns),
        times=tuple(turn.at for turn in turns),
    )


def _report(outcomes: Sequence[Outcome], *, every: int) -> Report:
    rows = [
        (
            f"{one.group}, {one.budget:,}{', with a question' if one.asked else ''}",
            one.views,
            f"{100 * one.share:.2f} %",
            one.below,
            f"{100 * one.worst:.1f} %",
            f"{100 * one.lines / max(one.messages, 1):.2f} %",
            one.history_tokens / max(one.views, 1),
            one.tokens / max(one.views, 1),
            one.refused,
        )
        for one in outcomes
    ]
    below = [one for one in outcomes if one.below]
    worst = min(outcomes, key=lambda one: one.worst)
    return Report(
        benchmark="what a view tells of",
        about="condensed messages that stand under something shown, at every resolution; recall left aside",
        settings={"messages between two views": every},
        grids=(
            Grid(
                title="condensed messages that are told",
                columns=(
                    "",
                    "views",
                    "told",
                    "views below 100 %",
                    "worst",
                    "in lines",
                    "history tokens",
                    "tokens",
                    "refused",
                ),
                rows=tuple(rows),
            ),
        ),
        figures={"groups": [asdict(one) | {"share": one.share} for one in outcomes]},
        targets=(
            Target(
                aim="every condensed message stands under something shown",
                measured="100 % everywhere"
                if not below
                else f"worst {100 * worst.worst:.1f} % ({worst.worst_at}, {worst.budget:,} tokens)",
                met=not below,
            ),
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("paths", type=Path, nargs="*", help="conversations, transcripts, or folders of them")
    parser.add_argument("--budgets", type=numbers, default=list(BUDGETS))
    parser.add_argument("--every", type=int, default=1, help="messages between two views")
    parser.add_argument("--without", action="store_true", help="views without a question alone")
    asked = parser.parse_args(arguments_given)
    kinds = (False,) if asked.without else (False, True)
    report = measure(asked.paths, budgets=asked.budgets, every=asked.every, asked=kinds)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
