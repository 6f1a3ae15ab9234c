"""Does each sign by which a clause is weighed help to tell what matters from talk?

The weight of a message is that of its weightiest clause. In real conversations (with questions that cite messages) it
should tell the cited messages from the rest, in talk with planted facts and in made-up talk the messages with a fact:
both as the area under the curve (ROC AUC, in %), 50 being chance. Each sign is left out in turn. Signs were chosen on
the first half of the conversations of each kind; the other half says whether that was luck.

    python -m benchmarks.fact_signs conversations/ --messages 1500

Beside it, on the same messages: a rule of one line, whether a message has a figure or a capital inside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, get_args

import numpy as np

from benchmarks.conversations import conversation
from benchmarks.plain_facts import PlainList, plain_talk
from benchmarks.planted_talk import planted_talk
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from langchain_tiered_memory.conversations.reading import read_conversations
from langchain_tiered_memory.summaries.facts.clauses import read_clause, stated_by
from langchain_tiered_memory.summaries.facts.reading import parts_of_message
from langchain_tiered_memory.summaries.facts.signs import WEIGHTS, weight_of
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.types.records import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_RULE = re.compile(r"\d|[a-z,] [A-Z]")
_SEEDS = (301, 302)
_HALVES = ("first half", "other half")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A person's message."""

    text: str
    matters: bool
    """Whether a question cites it, or a fact was planted in it."""
    clauses: tuple[frozenset[str], ...]
    """The signs of each of its clauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One conversation."""

    kind: str
    said: tuple[Said, ...]

    def auc(self, without: str = "") -> float:
        """How well the weights tell what matters, without one sign; in %."""
        return _auc(
            ((max((weight_of(one - {without}) for one in each.clauses), default=0.0)), each.matters)
            for each in self.said
        )

    def auc_of_rule(self) -> float:
        """The same of the simplest rule."""
        return _auc((float(_RULE.search(each.text) is not None), each.matters) for each in self.said)


def _auc(weighed: Iterable[tuple[float, bool]]) -> float:
    weights, matters = (np.array(column) for column in zip(*weighed, strict=True))
    _, place, counts = np.unique(weights, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[place]
    count = int(matters.sum())
    return 100 * float(ranks[matters].sum() - count * (count + 1) / 2) / max(count * (len(matters) - count), 1)


def _said(number: int, text: str, *, matters: bool) -> Said:
    entry = Entry(
        seq=number, id=f"m{number}", role="user", text=text, payload="", digest="", tokens=0, at=0.0, name=None,
        track="main", kind=None, task=None, calls=(), answers=None, group=number, pinned=False, revision=0,
        summary_id=None,
    )  # fmt: skip
    read = (
        read_clause(stated_by(piece.text), entry, about="", listed=piece.kind == "item")
        for part, _ in parts_of_message(entry, text)
        for piece in pieces(part)
        if piece.kind in ("sentence", "item") and stated_by(piece.text)
    )
    return Said(text=text, matters=matters, clauses=tuple(one.signs for one in read if one is not None))


def sources(paths: Sequence[Path], *, messages: int) -> Iterator[Source]:
    """All conversations, read."""
    for path in sorted(file for one in paths for file in ([one] if one.is_file() else one.glob("*-*.json"))):
        for held in read_conversations(path):
            cited = {turn for asked in held.questions for turn in asked.evidence}
            said = tuple(
                _said(number, turn.text, matters=turn.id in cited)
                for number, turn in enumerate(held.turns, 1)
                if turn.message.type == "human" or turn.message.name
            )
            if any(one.matters for one in said):
                yield Source(kind=f"cited, {path.stem.partition('-')[0]}", said=said)
    planted = {"planted, made up": [conversation(messages, seed=seed) for seed in _SEEDS]}
    for folder in (one for one in paths if one.is_dir()):
        planted[f"planted, {folder.name}"] = [planted_talk(folder, messages, seed=seed) for seed in _SEEDS]
        for listed in get_args(PlainList):
            said_plainly = [plain_talk(folder, messages, seed=seed, listed=listed) for seed in _SEEDS]
            planted[f"said plainly, {listed} list, {folder.name}"] = said_plainly
    for kind, found in planted.items():
        for made in found:
            people = [turn for turn in made.turns if turn.message.type == "human"]
            said = tuple(_said(n, str(one.message.text), matters=one.fact is not None) for n, one in enumerate(people))
            yield Source(kind=kind, said=said)


def measure(paths: Sequence[Path], *, messages: int) -> Report:
    """All signs, and each left out."""
    kinds: dict[str, list[Source]] = {}
    for one in sources(paths, messages=messages):
        kinds.setdefault(one.kind, []).append(one)
    halves = [[one for found in kinds.values() for one in found[half::2]] for half in (0, 1)]
    rows = tuple(
        (kind, len(found), mean(one.auc() for one in found), mean(one.auc_of_rule() for one in found))
        for kind, found in kinds.items()
    )
    whole = [mean(one.auc() for one in half) for half in halves]
    worth = {
        sign: tuple(whole[at] - mean(one.auc(sign) for one in half) for at, half in enumerate(halves))
        for sign in WEIGHTS.keys() - {""}
    }
    signs = tuple((sign, WEIGHTS[sign], *worth[sign]) for sign in sorted(worth, key=lambda one: (-worth[one][1], one)))
    ours, rule = (mean(row[at] for row in rows) for at in (2, 3))
    return Report(
        benchmark="signs of a fact",
        about="how well the weights of clauses tell messages that matter, ROC AUC in %",
        settings={"messages": messages, "seeds": list(_SEEDS)},
        grids=(
            Grid(title="all signs", columns=("messages that matter", "conversations", "weights", "rule"), rows=rows),
            Grid(title="points that a sign adds", columns=("sign", "log odds", *_HALVES), rows=signs),
        ),
        figures={"halves": dict(zip(_HALVES, whole, strict=True)), "mean": ours, "rule": rule},
        targets=(Target(aim="tells more than the rule", measured=f"{ours:.1f} and {rule:.1f} %", met=ours > rule),),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("paths", type=Path, nargs="*", help="folders of conversations with questions")
    parser.add_argument("--messages", type=int, default=1500, help="of a conversation with planted facts")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.paths, messages=asked.messages)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
