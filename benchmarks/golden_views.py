"""Contexts as digests, kept in a file and compared with it: whether a change of the code changes what a model sees.

Conversations and agents' transcripts are played message by message; at some places a context is made within each budget
under each of the named settings, and its bytes and its account (sections, tokens, caps, what is left out) become a row.
With `--questions` another is made there, for what the user asked or said half-way to it.

    python -m benchmarks.golden_views --keep golden.json --conversations DIR --transcripts DIR   # before
    python -m benchmarks.golden_views --against golden.json                                      # after: the same runs

`--against` names each row that differs, by run, settings, budget, place and what differs, and ends with 1 if one does.
Made-up runs are among them whatever is given.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.conversations import conversation
from benchmarks.made_up_run import made_up_run
from benchmarks.reporting import Grid, Report, Target, arguments, finish, numbers, show
from langchain_tiered_memory.conversations.reading import read_conversations
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import Settings, SettingsName
from langchain_tiered_memory.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.contexts import Context

BUDGETS = (1000, 4000, 8000, 32000)
_MADE_UP_MESSAGES = 240
_SHOWN_ROWS = 40
_NO_LIMIT_SECONDS = 86_400.0
"""For summaries that a view waits for: on a loaded machine the clock would decide what it shows."""

Said = list[tuple["BaseMessage", float]]
"""Messages with their times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One context."""

    run: str
    setting: str
    budget: int
    place: int
    """Messages before it."""
    tokens: int
    messages: str
    """A digest of the roles, texts and calls."""
    account: str
    """A digest of the sections."""
    asks: bool = False
    """Whether a question was asked."""

    @property
    def key(self) -> str:
        """Which context it is."""
        return f"{self.run} {self.setting} {self.budget} {self.place}{' asked' if self.asks else ''}"

    def differences(self, other: Golden) -> str:
        """What differs, in words."""
        named = [name for name in ("messages", "account") if getattr(self, name) != getattr(other, name)]
        tokens = f" ({other.tokens} tokens, {self.tokens} before)" if self.tokens != other.tokens else ""
        return " and ".join(named) + tokens


def runs(conversations: Path | None, transcripts: Path | None, *, most: int) -> Iterator[tuple[str, Said]]:
    """What is played: made-up talk and work, then what lies in the folders, each cut after `most` messages."""
    talk = conversation(min(most, _MADE_UP_MESSAGES), seed=1)
    yield "made-up talk", [(turn.message, turn.at) for turn in talk.turns]
    work = made_up_run(turns=min(most, _MADE_UP_MESSAGES) // 4, seed=1)
    yield "made-up work", list(zip(work.messages, work.times, strict=True))
    for path in sorted(conversations.rglob("*.json")) if conversations else ():
        if path.stem.upper() == path.stem:
            continue
        for number, one in enumerate(read_conversations(path)):
            at = [turn.at.timestamp() if turn.at else 1.7e9 + 60.0 * place for place, turn in enumerate(one.turns)]
            said = [(turn.message, when) for turn, when in zip(one.turns, at, strict=True)]
            yield f"{path.stem}/{number}", said[:most]
    for read in read_transcripts(transcripts) if transcripts else ():
        yield read.name, list(zip(read.messages, read.times, strict=True))[:most]


def played(
    name: str, said: Said, *, setting: SettingsName, budgets: Sequence[int], places: int, questions: bool
) -> Iterator[Golden]:
    """One run under one of the named settings: contexts at `places` places, in all budgets."""
    asked_at = {(place + 1) * len(said) // places for place in range(places)}
    settings = Settings.named(setting)
    settings = settings.model_copy(
        update={
            "tree": settings.tree.model_copy(update={"background": False}),
            "condensation": settings.condensation.model_copy(update={"foreground_seconds": _NO_LIMIT_SECONDS}),
        }
    )
    clock = FrozenClock(said[0][1])
    for budget in budgets:  # each in a memory of its own: what one view condenses, another shows
        with TieredMemory.open(
            None, settings=settings, embeddings=None, token_counter=best_counter(), clock=clock
        ) as memory:
            session = memory.session("golden")
            for number, (message, at) in enumerate(said, 1):
                clock.advance(at - clock())
                session.add_messages([message.model_copy(update={"id": f"m{number}"})], at=at)
                if number in asked_at:
                    shown = session.context(max_tokens=budget)
                    yield _golden(shown, run=name, setting=setting, budget=budget, place=number)
                    users = [str(one.text) for one, _ in said[:number] if one.type == "human"] if questions else []
                    if users:
                        asked = session.context(users[len(users) // 2], max_tokens=budget)
                        yield _golden(asked, run=name, setting=setting, budget=budget, place=number, asks=True)


def _golden(shown: Context, *, run: str, setting: str, budget: int, place: int, asks: bool = False) -> Golden:
    said = [[one.type, one.content, getattr(one, "tool_calls", None)] for one in shown.messages]
    account = [[section.name, section.tokens, section.cap, *section.entry_ids, "|", *section.passage_ids, "|",
                len(section.left_out)] for section in shown.sections]  # fmt: skip
    return Golden(
        run=run,
        setting=setting,
        budget=budget,
        place=place,
        tokens=shown.tokens,
        messages=_digest(said),
        account=_digest(account),
        asks=asks,
    )


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, default=str, sort_keys=True).encode(), digest_size=8).hexdigest()


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--keep", type=Path, help="write the contexts and what was played into this file")
    parser.add_argument("--against", type=Path, help="play what this file was made from, and compare")
    parser.add_argument("--conversations", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--settings", default=",".join(get_args(SettingsName)))
    parser.add_argument("--budgets", type=numbers, default=list(BUDGETS))
    parser.add_argument("--places", type=int, default=4, help="contexts of a run")
    parser.add_argument("--messages", type=int, default=400, help="of a run at most")
    parser.add_argument("--questions", action="store_true", help="make a context with a question at each place too")
    asked = parser.parse_args(arguments_given)
    kept = json.loads(asked.against.read_text(encoding="utf-8")) if asked.against else None
    options = kept["options"] if kept else {
        "conversations": str(asked.conversations) if asked.conversations else None,
        "transcripts": str(asked.transcripts) if asked.transcripts else None,
        "settings": asked.settings.split(","),
        "budgets": list(asked.budgets),
        "places": asked.places,
        "messages": asked.messages,
        "questions": asked.questions,
    }  # fmt: skip
    folders = [Path(options[name]) if options[name] else None for name in ("conversations", "transcripts")]
    made = [
        golden
        for name, said in runs(*folders, most=options["messages"])
        for setting in options["settings"]
        for golden in played(
            name,
            said,
            setting=setting,
            budgets=options["budgets"],
            places=options["places"],
            questions=options.get("questions", False),
        )
    ]
    if asked.keep:
        asked.keep.write_text(json.dumps({"options": options, "contexts": [asdict(one) for one in made]}))
    before = {one.key: one for one in (Golden(**row) for row in (kept["contexts"] if kept else []))}
    differing = [(one.key, before[one.key].differences(one)) for one in made if before.get(one.key, one) != one]
    missing = sorted({*before} ^ {one.key for one in made}) if kept else []
    shown = tuple([*differing, *((key, "in one of the two only") for key in missing)][:_SHOWN_ROWS])
    title = f"{len(made)} contexts, {len(differing) + len(missing)} differ"
    report = Report(
        benchmark="golden_views",
        about="whether the same messages give the same contexts as when the file was made",
        settings=options,
        grids=(Grid(title=title, columns=("context", "what differs"), rows=shown),),
        figures={"contexts": len(made), "differ": len(differing) + len(missing)},
        targets=(Target(aim="no context differs", measured=title, met=not shown if kept else None),),
    )
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    sys.exit(any(target.met is False for report in main() for target in report.targets))
