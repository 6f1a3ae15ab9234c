"""What a view shows of what a real model wrote: answers of one, recorded once, played again without it.

A made-up conversation was condensed by a language model that read each prompt. Its answers stand in `recorded/`, part
by part, each under digests of the lines that it was asked about. So a change of the prompts' words, or of what a call
holds, finds the same answers again, and what the memory makes of them can be compared before and after. The nearest
recorded part answers for one that is nearly the same; one that nobody was asked about is counted.

    python -m benchmarks.recorded_reader
    python -m benchmarks.recorded_reader --record FOLDER --seed 21 --messages 600   # prompt-NN.txt and answer-NN.txt

Beside it, on the same conversation: no model, and a rule of ten lines.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

from benchmarks.conversations import Conversation, conversation, shown_text
from benchmarks.other_parties import RareSentences
from benchmarks.parties import Counting, OurMemory, Party
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.summaries.writers.batches import texts_by_number
from langchain_tiered_memory.testing import ScriptedModel, in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage

    from benchmarks.conversations import PlantedFact

FOLDER = Path(__file__).parent / "recorded"
BUDGET = 4000
_HUMAN = "=== human ===\n"
_PART = re.compile(r"^<part (\d+) ", re.MULTILINE)
_TAG = re.compile(r"^<[^>\n]{1,60}>")
_KEPT = re.compile(r"^(\d+): (.+)$", re.MULTILINE)
_WORD = re.compile(r"[a-z]{4,30}")
_INSTEAD = re.compile(r"\[instead of [\d ]{1,80}\](?P<said>.*)")
_OURS = ("## ", "Aim at ", "<session>", "<kept>", "</")
"""How lines begin that any part has."""
_NEAR = 0.5
"""Of the lines of two parts together, that both have: from then on they are nearly the same."""
_AIMED = 0.9
_UNKNOWN = 0.1
"""More than that: record anew, the chunks are others."""
_BEGAN = 1_736_154_000.0
_PLACES = ("early", "middle", "late")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A part that a model was asked about, and what it wrote."""

    lines: frozenset[str]
    """Digests of the lines that it was shown."""
    answer: str


class RecordedReader:
    """A model that writes what was recorded.

    Args:
        parts: Everything that is known.
    """

    def __init__(self, parts: Sequence[Recorded]) -> None:
        self._parts = parts
        self.asked = 0
        """Parts that were asked for."""
        self.unknown = 0
        """Those that nobody was asked about."""
        self.model = ScriptedModel(answers=self._answer)

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return self.model.calls

    def _answer(self, messages: Sequence[BaseMessage]) -> str:
        several = in_parts(messages, self._written)
        answer = several if several is not None else self._written(str(messages[1].text))
        return with_places(answer, str(messages[1].text))

    def _written(self, asked: str) -> str:
        wanted = digests(asked)
        self.asked += 1
        best = max(self._parts, key=lambda one: _alike(one.lines, wanted), default=None)
        if best is None or _alike(best.lines, wanted) < _NEAR:
            self.unknown += 1
            return "- (nothing was recorded)"
        return best.answer


def with_places(answer: str, prompt: str) -> str:
    """A recorded answer with the places of the notes that a prompt lists: it was recorded with numbers of messages.

    Meant is the note that shares most words with what a line is about.
    """
    kept = [
        (place, set(_WORD.findall(note.casefold()))) for place, note in _KEPT.findall(prompt.partition("<kept>")[2])
    ]

    def placed(line: re.Match[str]) -> str:
        said = set(_WORD.findall(line["said"].partition(":")[0].casefold()))
        shared, place = max(((len(said & words), place) for place, words in kept), default=(0, ""))
        return f"[instead of {place}]{line['said']}" if shared else line["said"].lstrip()

    return _INSTEAD.sub(placed, answer)


def digests(text: str) -> frozenset[str]:
    """Of the lines of a part, without tags and marks around them: they tell parts apart, and quote none."""
    lines = (_TAG.sub("", line).strip() for line in text.splitlines() if not line.startswith(_OURS))
    return frozenset(hashlib.blake2b(line.encode(), digest_size=4).hexdigest() for line in lines if line)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(min(len(one), len(other)), 1)


def recorded_parts(folder: Path) -> list[Recorded]:
    """What a folder with `prompt-NN.txt` and `answer-NN.txt` holds, part by part."""
    found: list[Recorded] = []
    for prompt in sorted(folder.glob("prompt-*.txt")):
        asked = prompt.read_text(encoding="utf-8").partition(_HUMAN)[2]
        answer = (folder / prompt.name.replace("prompt", "answer")).read_text(encoding="utf-8")
        numbers = [int(number) for number in _PART.findall(asked)]
        written = texts_by_number(answer, max(numbers, default=1))
        left = iter(numbers)

        def write(own: str, left: Iterator[int] = left, written: dict[int, str] = written) -> str:
            found.append(Recorded(digests(own), written.get(next(left), "")))
            return found[-1].answer

        if in_parts([HumanMessage(asked)], write) is None:
            found.append(Recorded(digests(asked), answer.strip()))
    return [one for one in found if one.answer]


def read(path: Path) -> tuple[dict[str, Any], list[Recorded]]:
    """A file of `recorded/`: how its conversation is made, and the parts."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return kept["made"], [Recorded(frozenset(one["lines"]), one["answer"]) for one in kept["parts"]]


def write(path: Path, made: dict[str, Any], parts: Sequence[Recorded]) -> None:
    """Write such a file."""
    rows = [{"lines": sorted(one.lines), "answer": one.answer} for one in parts]
    path.write_text(json.dumps({"made": made, "parts": rows}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def held_by(party: Party, held: Conversation) -> str:
    """What a context says after a conversation, in which one was asked for before each answer."""
    for number, turn in enumerate(held.turns):
        # As it was recorded: a message every four minutes, sixty in a sitting, for chunks end where nobody spoke.
        party.add(turn.message, _BEGAN + 240.0 * number + 36_000.0 * (number // 60))
        if number % 2 == 0:
            party.context()
    return shown_text(party.context())


def shares(facts: Sequence[PlantedFact], text: str, *, turns: int) -> dict[str, float]:
    """The share of facts that a text states: of all, and of each third of the conversation."""
    folded = text.casefold()
    stated = [(min(fact.number * len(_PLACES) // turns, 2), fact.stated_in(folded)) for fact in facts]
    found = {"all": sum(one for _, one in stated) / max(len(stated), 1)}
    for place, name in enumerate(_PLACES):
        mine = [one for where, one in stated if where == place]
        found[name] = sum(mine) / max(len(mine), 1)
    return found


def measure(path: Path, *, budget: int = BUDGET) -> Report:
    """Play one recorded conversation: with its reader, without a model, and by a rule of ten lines."""
    made, parts = read(path)
    held, counter = conversation(made["messages"], seed=made["seed"]), best_counter()
    reader = RecordedReader(parts)
    parties: dict[str, Party] = {
        "this memory, the recorded model": OurMemory(None, budget, counter=counter, summariser=reader, recall=True),
        "this memory, no model": OurMemory(None, budget, counter=counter, summariser=None, recall=True),
        "rare sentences, a rule of ten lines": RareSentences(budget, counting=Counting(counter)),
    }
    facts = held.facts_until(len(held.turns))
    rows: list[tuple[str | float, ...]] = []
    figures: dict[str, dict[str, float]] = {}
    for name, party in parties.items():
        try:
            text = held_by(party, held)
        finally:
            party.close()
        figures[name] = shares(facts, text, turns=len(held.turns))
        rows.append((name, *(round(100 * one, 1) for one in figures[name].values()), counter.count_text(text)))
    first = figures["this memory, the recorded model"]
    targets = (
        Target(
            aim=f"with the recorded model at least {_AIMED:.0%} of the facts are stated",
            measured=f"{first['all']:.1%}",
            met=first["all"] >= _AIMED,
        ),
        Target(
            aim=f"at most {_UNKNOWN:.0%} of the parts were not recorded",
            measured=f"{reader.unknown} of {reader.asked}",
            met=reader.unknown <= _UNKNOWN * reader.asked,
        ),
    )
    return Report(
        benchmark="a recorded reader",
        about="planted facts in one context after a conversation that a real model's answers condensed",
        settings=made | {"budget": budget, "calls": reader.calls},
        grids=(Grid(title="facts stated, %", columns=("", "all", *_PLACES, "tokens"), rows=tuple(rows)),),
        figures={"shares": figures, "asked": reader.asked, "unknown": reader.unknown},
        targets=targets,
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET, help="of a context, in tokens")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="take up a folder of prompts and answers")
    parser.add_argument("--seed", type=int, default=0, help="of the conversation that was condensed there")
    parser.add_argument("--messages", type=int, default=600, help="of it")
    asked = parser.parse_args(arguments_given)
    if asked.record is not None:
        made = {"seed": asked.seed, "messages": asked.messages}
        write(FOLDER / f"made_up_talk_{asked.seed}.json", made, recorded_parts(asked.record))
        return []
    reports = [measure(path, budget=asked.budget) for path in sorted(FOLDER.glob("made_up_talk_*.json"))]
    for report in reports:
        show(report)
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
