"""What the joining of notes is worth: a list without room, before and after a model said it in fewer words.

A made-up talk of 400 short messages tells sixteen matters in five sentences each, far apart. Each sentence becomes a
note, in words that were written beside it, and a small view has no room for all. So the memory asks for a review. What
a language model answered to that, reading the notes, stands in `recorded/reviewed_notes.json`: its lines, each with
the notes that it names. Two have a slip, as such answers have: one leaves out a limit, one names another matter's note,
too. It is played again, and beside it a model that answers nothing to a review.

    python -m benchmarks.reviewed_notes
    python -m benchmarks.reviewed_notes --prompts FOLDER   # write down what a review is asked
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, HumanMessage

from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import CondensationSettings, Settings, TreeSettings
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.testing import ScriptedModel, in_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

RECORDED = Path(__file__).parent / "recorded" / "reviewed_notes.json"
BUDGET = 1100
MESSAGES = 400
_APART = 5
"""Messages from one sentence that tells something to the next."""
_BEGAN = datetime(2025, 1, 6, 9, tzinfo=UTC)
_LOOKED_AT = 8
"""Messages from one context to the next."""
_LOST = 0.02
_MATTERS = (
    "Ines's flat move", "Marek's bike workshop", "Oona's choir tour", "Pavel's greenhouse", "Lotte's first exhibition",
    "Sunil's night course", "Greta's bakery stall", "Tariq's radio play", "Wanda's beehives", "Emil's canoe trip",
    "Yara's print shop", "Bruno's roof repair", "Hanna's reading circle", "Ivo's chess league", "Mina's puppet theatre",
    "Otis's weather station",
)  # fmt: skip
_NAMES = (
    "Halvorsen", "Petridis", "Quandt", "Rosario", "Szabo", "Tillman", "Urban", "Vasquez", "Wexler", "Yildiz", "Zander",
    "Abram", "Becker", "Corvin", "Dufour", "Eklund",
)  # fmt: skip
_PLACES = (
    "the old mill", "pier four", "the chapel hall", "the east depot", "the tram shed", "the quarry house", "the lido",
    "the corn exchange", "the north gate", "the boat club", "the print yard", "the court garden", "the annexe",
    "the granary", "the signal box", "the weir cottage",
)  # fmt: skip
_MONTHS = ("March", "April", "May", "June")
_SMALL_TALK = (
    "Did you sleep well?", "It rained the whole night here.", "I still have to hang up the washing.", "Ha, of course.",
    "The neighbours are drilling again.", "I had toast for lunch.", "Sounds good to me.", "The bus was late, as ever.",
    "What a grey morning.", "I am on my third tea.", "One moment, the door.", "Back again.", "You are right there.",
    "My shoes are soaked.", "That film was far too long.", "I keep losing my pen.", "Well, we shall see.",
    "Fair enough.", "The cat sits on my papers.", "No rush at all.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of the talk, the note that it becomes, and what of it must be known later; empty for a step."""

    said: str
    note: str
    value: str


def talk() -> tuple[list[BaseMessage], list[Told]]:
    """The messages, and what they tell."""
    dice = random.Random(11)
    told: list[Told] = []
    for turn in range(_APART):
        for matter, name, place in zip(_MATTERS, _NAMES, _PLACES, strict=True):
            day, most = f"{dice.randint(2, 28)} {_MONTHS[dice.randrange(4)]}", f"{dice.randint(21, 98)}0 euros"
            code = f"{matter[0]}{dice.choice('KRTX')}-{dice.randint(201, 989)}"
            told.append(
                (
                    Told(f"{matter} begins on {day}, that is settled.", f"{matter}: begins on {day}", day),
                    Told(f"For {matter} we still wait for an offer.", f"{matter}: an offer is still awaited", ""),
                    Told(f"The offer came: {matter} may cost {most} at most.", f"{matter}: at most {most}", most),
                    Told(f"{name} is in charge of {matter} from now on.", f"{matter}: {name} is in charge", name),
                    Told(
                        f"{matter} takes place at {place}, door code {code}.",
                        f"{matter}: at {place}, door code {code}",
                        code,
                    ),
                )[turn]
            )
    messages: list[BaseMessage] = []
    for number in range(MESSAGES):
        said = dice.choice(_SMALL_TALK)
        if number % _APART == 2:  # noqa: PLR2004 - somewhere between others
            said = f"{said} {told[number // _APART].said}"
        messages.append(AIMessage(said) if number % 2 else HumanMessage(said))
    return messages, told


_REVIEW = re.compile(r"^<part (\d+) notes ", re.MULTILINE)
_KEPT = re.compile(r"^(\d+)(?: \([\d-]+\))?: (.+)$", re.MULTILINE)
_SAID = re.compile(r"^<m [^>\n]*>(.+)$", re.MULTILINE)
_MERGED = re.compile(r"^- (?!\[)(.+)$", re.MULTILINE)
"""Of summaries that another merges, what they say beside their notes."""


@dataclass(slots=True)
class Reader:
    """A model that notes what the talk tells, and answers reviews with lines that were recorded.

    Args:
        told: What the talk tells.
        lines: Joined notes, each with the notes in the place of which it stands.
    """

    told: Sequence[Told]
    lines: Sequence[tuple[str, Sequence[str]]] = ()
    reviews: list[str] = field(default_factory=list)
    """What was asked in reviews."""

    def __call__(self, messages: Sequence[BaseMessage]) -> str:
        """The answer to one prompt."""
        asked = str(messages[-1].text)
        answer = in_parts(messages, self._noted) or self._noted(asked)
        for number in _REVIEW.findall(asked):
            self.reviews.append(asked.partition("<kept>")[2].partition("</kept>")[0].strip())
            answer = f"{answer.partition(f'<summary {number}>')[0]}\n<summary {number}>\n{self._joined()}\n</summary>"
        return answer

    def _noted(self, asked: str) -> str:
        notes = [f"- [keep] {one.note}" for one in self.told if one.said in asked]
        said = _SAID.findall(asked)[:2] or _MERGED.findall(asked)
        return "\n".join([*notes, *(f"- {line}" for line in said)])

    def _joined(self) -> str:
        places = {note: place for place, note in _KEPT.findall(self.reviews[-1])}
        found: list[str] = []
        for line, notes in self.lines:
            named = [places[note] for note in notes if note in places]
            if len(named) == len(notes):
                found.append(f"- [instead of {' '.join(named)}] [keep] {line}")
        return "\n".join(found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a view has in the end."""

    stated: float
    """The share of what must be known that stands in it."""
    listed: int
    """Tokens of its list of facts."""
    notes: int
    """That hold."""
    lost: int
    """Values that neither a note nor the view has."""


def played(reader: Reader, *, budget: int) -> Outcome:
    """Have the talk condensed by a reader, with a context at every eighth message."""
    messages, told = talk()
    settings = Settings(
        tree=TreeSettings(background=False, deadline_seconds=None),
        condensation=CondensationSettings(max_calls_per_minute=None, foreground_seconds=600),
    )
    counter = best_counter()
    model = ScriptedModel(answers=reader, profile={"max_input_tokens": 128_000, "max_output_tokens": 8_000})
    moments = [_BEGAN]  # pauses after failures go by the clock of the talk, not by how fast this machine is
    with TieredMemory.open(
        model=model,
        settings=settings,
        embeddings=None,
        token_counter=counter,
        clock=lambda: moments[-1].timestamp(),  # noqa: PLW0108 - of the last one by then
    ) as memory:
        joined: list[EventName] = []
        memory.subscribe(lambda event: joined.append(EventName(event.name)))
        session = memory.session("s")
        for first in range(0, MESSAGES, _LOOKED_AT):
            moments.append(_BEGAN + timedelta(minutes=4 * first))
            session.add_messages(messages[first : first + _LOOKED_AT], at=moments[-1])
            session.context("", max_tokens=budget)
            session.flush()
        view = session.context("", max_tokens=budget)
        facts = view.section("facts")
        text = "\n".join(str(one.text) for one in view.messages)
        held = [one.text for one in session.facts(k=999) if one.by_model and one.weight >= LASTING]
        values = [one.value for one in told if one.value]
        return Outcome(
            stated=sum(value in text for value in values) / len(values),
            listed=counter.count_text(facts.text) if facts is not None else 0,
            notes=len(held),
            lost=sum(not any(value in one for one in (*held, text)) for value in values),
        )


def measure(*, budget: int = BUDGET) -> Report:
    """With and without the recorded answers to reviews."""
    _, told = talk()
    lines = [(line, notes) for line, notes in json.loads(RECORDED.read_text(encoding="utf-8"))]
    with_answers = Reader(told, lines)
    before, after = played(Reader(told), budget=budget), played(with_answers, budget=budget)
    rows = tuple(
        (name, round(100 * one.stated, 1), one.listed, one.notes, one.lost)
        for name, one in (("reviews unanswered", before), ("reviews as recorded", after))
    )
    values = sum(bool(one.value) for one in told)
    return Report(
        benchmark="reviewed notes",
        about="a list of notes without room, before and after a model said it in fewer words",
        settings={"messages": MESSAGES, "told": len(told), "budget": budget, "reviews": len(with_answers.reviews)},
        grids=(
            Grid(
                title="in the last view",
                columns=("", "facts stated, %", "tokens of the list", "notes that hold", "values lost"),
                rows=rows,
            ),
        ),
        figures={"before": asdict(before), "after": asdict(after)},
        targets=(
            Target(
                aim="more is stated with the reviews than without",
                measured=f"{after.stated:.1%} and {before.stated:.1%}",
                met=after.stated > before.stated,
            ),
            Target(
                aim=f"at most {_LOST:.0%} of the values are lost to the slips of the recorded answers",
                measured=f"{after.lost} of {values}",
                met=after.lost <= _LOST * values,
            ),
        ),
    )


def main(given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET, help="of a context, in tokens")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="write the notes that reviews are shown there")
    asked = parser.parse_args(given)
    if asked.prompts is not None:
        reader = Reader(talk()[1])
        print(played(reader, budget=asked.budget))
        asked.prompts.write_text("\n\n".join(reader.reviews), encoding="utf-8")
        return []
    reports = [measure(budget=asked.budget)]
    for report in reports:
        show(report)
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
