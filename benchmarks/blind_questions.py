"""Blind questions: who answers sees a context and a question, and neither which method chose it nor the answer.

Contexts of this memory's two views and of the strongest simple method (half the window, half of the best hits) are
dealt so that no reader sees a question twice, and each question is answered from each of the three. A reader is
whoever answers `NN.txt` from that file alone: a person, or a language model. Somebody else writes down which answers
are right, without knowing the method, and the second command counts.

    python -m benchmarks.blind_questions deal OUT conversations/ --each 10
    python -m benchmarks.blind_questions count OUT --judged judged.json   # {"reader-0/01": 1, "reader-0/02": 0.5, ...}
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal, cast

from benchmarks.asked_conversations import remember
from benchmarks.evidence import priced
from benchmarks.reporting import Grid, Report, arguments, finish, show
from benchmarks.simple_methods import HALF, choose, embedded, index_turns
from langchain_tiered_memory.conversations.reading import read_conversations
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import BaseMessage

    from benchmarks.evidence import PricedTurns
    from langchain_tiered_memory.conversations.turns import Conversation, Question

VIEWS: tuple[Literal["default", "recall"], ...] = ("default", "recall")
METHODS = (*VIEWS, HALF)
_NAME = "blind questions"
_READERS = len(METHODS)
_FRAME = "CONTEXT (of a long conversation; what a program chose to show):\n\n{context}\n\nQUESTION: {question}\n"


def asked_of(conversation: Conversation, *, each: int, seed: int) -> list[Question]:
    """`each` questions that have an answer, of every kind by turns, drawn by the seed."""
    drawn = random.Random(seed)
    kinds: dict[str, list[Question]] = {}
    able = [one for one in conversation.questions if one.answer and not one.adversarial]
    for one in drawn.sample(able, len(able)):
        kinds.setdefault(one.category, []).append(one)
    longest = max(map(len, kinds.values()), default=0)
    by_turns = [found[place] for place in range(longest) for found in kinds.values() if place < len(found)]
    return by_turns[:each]


def contexts(
    conversation: Conversation, questions: Sequence[Question], *, budget: int, embeddings: Embeddings | None
) -> Iterator[dict[str, str]]:
    """What each method shows for each question, as text."""
    counter = best_counter()
    turns = priced(conversation, counter.count_text)
    indexes = index_turns(turns, embeddings)
    vectors = embedded(embeddings, [one.text for one in questions]) if embeddings else None
    with TieredMemory.open(None, embeddings=embeddings, token_counter=counter) as memory:
        session = memory.session("read")
        remember(session, conversation)
        for number, asked in enumerate(questions):
            vector = vectors[number] if vectors is not None else None
            chosen = choose(indexes, asked.text, (budget,), vector=vector, seed=number)
            shown = {HALF: "\n".join(_log(conversation, turns, chosen[HALF][budget]))} if HALF in chosen else {}
            for view in VIEWS:
                found = session.context(asked.text, max_tokens=budget, view=view).messages
                shown[view] = "\n\n".join(f"<{_spoken(one)}>\n{one.text}\n</{one.type}>" for one in found)
            yield shown


def _log(conversation: Conversation, turns: PricedTurns, places: Collection[int]) -> Iterator[str]:
    """The turns as they are priced: a line each, behind a line with the day of each sitting."""
    sitting = None
    for place in sorted(places):
        at = conversation.turns[place].at
        if at and turns.sittings[place] != sitting:
            yield f"[{at:%Y-%m-%d %H:%M}]"
        sitting = turns.sittings[place]
        yield turns.lines[place]


def _spoken(message: BaseMessage) -> str:
    """Who speaks: a model is told the name beside the role."""
    return f'{message.type} name="{message.name}"' if message.name else message.type


def deal(out: Path, paths: Sequence[Path], *, each: int, budget: int, seed: int) -> Report:
    """Write the files of the readers, and `key.json` for who judges and who counts."""
    embeddings = resolve_embeddings("auto")
    if embeddings is None:
        msg = "the simple method searches by meaning: fetch MiniLM's files with `tiered-memory setup`"
        raise SystemExit(msg)
    key: list[dict[str, Any]] = []
    for path in paths:
        for conversation in read_conversations(path):
            questions = asked_of(conversation, each=each, seed=seed)
            for one, shown in zip(
                questions, contexts(conversation, questions, budget=budget, embeddings=embeddings), strict=True
            ):
                number = len(key) + 1
                dealt = [METHODS[(number + reader) % _READERS] for reader in range(_READERS)]
                for reader, method in enumerate(dealt):
                    file = out / f"reader-{reader}" / f"{number:02}.txt"
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(_FRAME.format(context=shown[method], question=one.text), encoding="utf-8")
                tokens = {method: best_counter().count_text(text) for method, text in shown.items()}
                key.append({"number": number, "file": path.stem, "kind": one.category, "question": one.text,
                            "answer": one.answer, "dealt": dealt, "tokens": tokens})  # fmt: skip
                (out / "key.json").write_text(json.dumps(key, indent=1, ensure_ascii=False), encoding="utf-8")
    rows = tuple((method, mean(one["tokens"][method] for one in key)) for method in METHODS)
    grid = Grid(title="contexts dealt", columns=("method", "tokens, mean"), rows=rows)
    about = f"{len(key)} questions for each of {_READERS} readers"
    settings = {"budget": budget, "seed": seed}
    return Report(benchmark=_NAME, about=about, settings=settings, grids=(grid,), figures=dict(rows))


def count(out: Path, judged: dict[str, float]) -> Report:
    """How many answers were right, by method, and by kind of question."""
    key = {one["number"]: one for one in json.loads((out / "key.json").read_text(encoding="utf-8"))}
    marks: dict[tuple[str, str], list[float]] = {}
    for name, mark in judged.items():
        reader, _, number = name.partition("/")
        one = key[int(number)]
        method = one["dealt"][int(reader.rpartition("-")[2])]
        for kind in ("all", one["file"].partition("-")[0]):
            marks.setdefault((kind, method), []).append(mark)
    kinds = list(dict.fromkeys(kind for kind, _ in marks))
    rows = tuple(
        (f"{kind} ({len(marks[kind, METHODS[0]])})", *(sum(marks[kind, one]) for one in METHODS)) for kind in kinds
    )
    grid = Grid(title="right answers", columns=("questions", *METHODS), rows=rows)
    figures = {f"{kind}, {method}": sum(found) for (kind, method), found in marks.items()}
    return Report(benchmark=_NAME, about=f"{len(judged)} answers", settings={}, grids=(grid,), figures=figures)


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("what", choices=("deal", "count"))
    parser.add_argument("out", type=Path)
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--each", type=int, default=10, help="questions of a conversation")
    parser.add_argument("--budget", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--judged", type=Path, help="marks by answer, 0 to 1, as JSON")
    asked = parser.parse_args(arguments_given)
    if asked.what == "deal":
        report = deal(asked.out, asked.paths, each=asked.each, budget=asked.budget, seed=asked.seed)
    else:
        report = count(asked.out, cast("dict[str, float]", json.loads(asked.judged.read_text(encoding="utf-8"))))
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
