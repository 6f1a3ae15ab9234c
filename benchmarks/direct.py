"""What is asked is found, however it is put: forms of asking, by kinds of runs, by budgets.

Facts are planted in made-up runs (an agent that reads files, one with another tool, one whose tool states them, talk,
and a fact in every turn alike but for its numbers) and asked for when they are out of sight, each in a copy of the
session of its own. A cell says in how many contexts what was settled stands; beside it stands the simplest rule: the
newest messages in half of the budget, in the other half those that BM25 ranks best for the whole message.

    python -m benchmarks.direct --turns 150 --facts 6 --budgets 1000,2000,4000,8000
    python -m benchmarks.direct --world ports --embed

`direct_words` has two worlds: changes are tried on `ports`, and `invoices` is what is reported.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.direct_words import FORMS, WORLDS, World
from benchmarks.reporting import Grid, Report, Target, arguments, finish, numbers, show
from benchmarks.simple_methods import Okapi
from langchain_tiered_memory import Settings, TieredMemory
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.protocols import TokenCounter

KINDS: Final = ("files are read", "another tool", "told by a tool", "talk", "facts alike")
BUDGETS: Final = (1000, 2000, 4000, 8000)
_AIMED = 0.97
_STATED_EVERY = 6
_ASKED_UNTIL = 0.6
"""Of a run: what is asked for was said before that, out of sight of the newest messages."""
_RESULT_LINES = 12
_LOG_LINES = 14
_FREE_SHARE = 0.1
"""Of the budget: with less of it free nothing was withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A made-up run, and what it settled: subjects with their values and the place where they were told."""

    messages: tuple[BaseMessage, ...]
    facts: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question within one budget."""

    kind: str
    form: str
    budget: int
    found: bool
    free: int
    simple: bool
    """Whether the simplest rule shows it."""


Texts: TypeAlias = "list[tuple[str, int]]"


def made_up(kind: str, world: World, *, turns: int, seed: int) -> Run:
    """A run of a kind."""
    chance = random.Random(f"{kind} {world.name} {seed}")
    messages: list[BaseMessage] = []
    facts: list[tuple[str, str, int]] = []
    left = list(world.people) if kind == "talk" else _files(world, turns, chance)
    chance.shuffle(left)
    every = list(left)
    taken: set[str] = set()
    for turn in range(turns):
        if left and (kind == "facts alike" or turn % _STATED_EVERY == _STATED_EVERY - 1):
            subject, value = left.pop(), _value(kind, world, chance, taken)
            form = (
                world.alike if kind == "facts alike" else chance.choice(world.told if kind == "talk" else world.settled)
            )
            facts.append((subject, value, len(messages)))
            said = form.format(s=subject, v=value)
            if kind == "told by a tool":
                messages += _worked(world, subject, turn, chance, other=True, says=said)
                continue
            messages += [HumanMessage(said), AIMessage("I will keep that in mind.")]
        if kind == "talk":
            said, answered = chance.choice(world.chat)
            messages += [HumanMessage(said), AIMessage(answered)]
        else:
            messages += _worked(
                world, chance.choice(every), turn, chance, other=kind in ("another tool", "told by a tool")
            )
    return Run(messages=tuple(messages), facts=tuple(facts))


def _files(world: World, turns: int, chance: random.Random) -> list[str]:
    """As many names as turns: of few digits, so that their numbers stand elsewhere too."""
    return [chance.choice(world.subjects).format(n=number) for number in range(1, turns + 1)]


def _value(kind: str, world: World, chance: random.Random, taken: set[str]) -> str:
    while True:
        of_person = "".join(chance.sample(world.values, 3)).capitalize()
        value = of_person if kind == "talk" else str(chance.randint(1100, 9900))
        if value not in taken:
            taken.add(value)
            return value


def _worked(
    world: World, subject: str, turn: int, chance: random.Random, *, other: bool, says: str = ""
) -> list[BaseMessage]:
    """An order, a call, its result, which `says` something among its lines, a remark."""
    lines = [chance.choice(world.results).format(n=chance.randint(1, 99)) for _ in range(_RESULT_LINES)]
    lines[_RESULT_LINES // 2 :] = [says, *lines[_RESULT_LINES // 2 :]] if says else lines[_RESULT_LINES // 2 :]
    reads, asks = world.calls
    name, given = (asks, {"request": f"status of {subject}"}) if other else (reads, {"path": subject})
    return [
        HumanMessage(chance.choice(world.orders).format(s=subject)),
        AIMessage("", tool_calls=[{"id": f"c{turn}", "name": name, "args": given}]),
        ToolMessage("\n".join(lines), tool_call_id=f"c{turn}", name=name),
        AIMessage(chance.choice(world.remarks).format(s=subject)),
    ]


def question(form: str, subject: str, world: World, *, of_person: bool, others: Sequence[str], seed: int) -> str:
    """What is asked, in a form."""
    chance = random.Random(f"{form} {subject} {seed}")
    texts = world.of_person if of_person else world.of_file
    asks = texts.get(form, texts["bare"]).format(s=subject)
    log = "\n".join(
        chance.choice(world.log).format(d=chance.randint(1, 9), m=chance.randint(10, 59), o=chance.choice(others))
        for _ in range(_LOG_LINES)
    )
    match form:
        case "greeting before":
            return f"{chance.choice(world.greetings)} {asks}"
        case "sentences before":
            return f"{' '.join(chance.choice(world.sentences))} {asks}"
        case "below a log":
            return f"{log}\n\n{asks}"
        case "above a log":
            return f"{asks}\n\n{log}"
        case _:
            return asks


def simplest(texts: Texts, asks: str, budget: int, *, index: Okapi, count: int) -> str:
    """The newest messages in half of the budget, the best by BM25 for the whole message in the other half."""
    shown: set[int] = set()
    left = budget - count
    for at in range(len(texts) - 1, -1, -1):
        if texts[at][1] > left - budget // 2:
            break
        shown.add(at)
        left -= texts[at][1]
    for at in (-index.scores(analyse(asks))).argsort(kind="stable").tolist():
        if at not in shown and texts[at][1] <= left:
            shown.add(at)
            left -= texts[at][1]
    return "\n".join(texts[at][0] for at in sorted(shown))


def measure(
    world: World,
    *,
    kinds: Sequence[str] = KINDS,
    forms: Sequence[str] = FORMS,
    budgets: Sequence[int] = BUDGETS,
    turns: int = 150,
    facts: int = 6,
    seed: int = 0,
    embeddings: Embeddings | None = None,
    counter: TokenCounter | None = None,
) -> list[Asked]:
    """Ask for `facts` facts of each kind of run, in each form, within each budget; `None` counts as for gpt-4o."""
    counter = counter or best_counter("gpt-4o")
    asked: list[Asked] = []
    for kind in kinds:
        print(kind, file=sys.stderr, flush=True)
        with TemporaryDirectory() as folder:
            asked += _asked(kind, world, forms, budgets, turns, facts, seed, embeddings, counter, Path(folder))
    return asked


def _asked(  # noqa: PLR0917 - one row of options, passed on once
    kind: str,
    world: World,
    forms: Sequence[str],
    budgets: Sequence[int],
    turns: int,
    facts: int,
    seed: int,
    embeddings: Embeddings | None,
    counter: TokenCounter,
    folder: Path,
) -> Iterator[Asked]:
    run = made_up(kind, world, turns=turns, seed=seed)
    texts = [(text_of(message), counter.count_message(message)) for message in run.messages]
    index = Okapi([analyse(text) or [""] for text, _ in texts])
    early = [one for one in run.facts if one[2] < _ASKED_UNTIL * len(run.messages)]
    chosen = random.Random(seed).sample(early, min(facts, len(early)))
    others = [subject for subject, _, _ in run.facts]
    opened = partial(TieredMemory.open, embeddings=embeddings, token_counter=counter, settings=_settings())
    kept = folder / "kept"
    kept.mkdir()
    with opened(kept / "memory.db") as memory:
        session = memory.session("s")
        session.add_messages(run.messages)
        session.flush()
        for budget in budgets:
            session.context("", max_tokens=budget)
            session.context(max_tokens=budget)
    for form in forms:
        for subject, value, _ in chosen:
            asks = question(form, subject, world, of_person=kind == "talk", others=others, seed=seed)
            copy = folder / "copy"
            shutil.copytree(kept, copy)
            with opened(copy / "memory.db") as memory:
                session = memory.session("s")
                session.add_messages([HumanMessage(asks)])
                for budget in budgets:
                    context = session.context(max_tokens=budget)
                    shown = "\n".join(text_of(message) for message in context.messages)
                    count = counter.count_message(HumanMessage(asks))
                    rule = simplest(texts, asks, budget, index=index, count=count)
                    yield Asked(
                        kind=kind,
                        form=form,
                        budget=budget,
                        found=value in shown,
                        free=budget - context.tokens,
                        simple=value in rule,
                    )
            shutil.rmtree(copy)


def _settings() -> Settings:
    settings = Settings()
    return settings.model_copy(update={"tree": settings.tree.model_copy(update={"background": False})})


def report_of(asked: Sequence[Asked], *, settings: Mapping[str, object]) -> Report:
    """Tables of a run."""
    cells: dict[tuple[str, str, int], list[Asked]] = defaultdict(list)
    for one in asked:
        cells[one.kind, one.form, one.budget].append(one)
    kinds = list(dict.fromkeys(one.kind for one in asked))
    forms = list(dict.fromkeys(one.form for one in asked))
    budgets = sorted({one.budget for one in asked})
    heads = ("form", *(f"{budget:,}" for budget in budgets), *(f"rule, {budget:,}" for budget in budgets))
    heads = (*heads, "free where missing")
    grids = []
    for kind in kinds:
        rows = []
        for form in forms:
            ones = [cells[kind, form, budget] for budget in budgets]
            free = [one.free for cell in ones for one in cell if not one.found]
            rows.append((
                form,
                *(_percent([one.found for one in cell]) for cell in ones),
                *(_percent([one.simple for one in cell]) for cell in ones),
                max(free) if free else None,
            ))  # fmt: skip
        grids.append(Grid(title=f"{kind}: answered in view, %", columns=heads, rows=tuple(rows)))
    found, simple = ([getattr(one, name) for one in asked] for name in ("found", "simple"))
    withheld = [one for one in asked if not one.found and one.free > _FREE_SHARE * one.budget]
    share = sum(found) / max(len(found), 1)
    targets = (
        Target(
            aim=f"at least {_AIMED:.0%} of what is asked stands in view",
            measured=f"{share:.1%} of {len(found):,}; by the simplest rule {_percent(simple):.1f} %",
            met=share >= _AIMED,
        ),
        Target(
            aim="nothing is withheld while a tenth of the budget is free",
            measured=f"{len(withheld)} of {len(found) - sum(found)} that are missing",
            met=not withheld,
        ),
    )
    figures = {
        "answered": share,
        "simplest": _percent(simple) / 100,
        "withheld": len(withheld),
        "cells": [
            {
                "kind": kind,
                "form": form,
                "budget": budget,
                "asked": len(cell),
                "answered": sum(one.found for one in cell),
                "simplest": sum(one.simple for one in cell),
                "free_where_missing": [one.free for one in cell if not one.found],
            }
            for (kind, form, budget), cell in cells.items()
        ],
    }
    return Report(
        benchmark="direct",
        about="what is asked is found, however it is put",
        settings=dict(settings),
        grids=tuple(grids),
        figures=figures,
        targets=targets,
    )


def _percent(hits: Sequence[bool]) -> float:
    return 100 * sum(hits) / max(len(hits), 1)


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--world", choices=sorted(WORLDS), default="invoices")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of runs, with commas between")
    parser.add_argument("--forms", default=",".join(FORMS), help="of asking, with commas between")
    parser.add_argument("--budgets", type=numbers, default=list(BUDGETS))
    parser.add_argument("--turns", type=int, default=150, help="of each run")
    parser.add_argument("--facts", type=int, default=6, help="asked for in each form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--embed", action="store_true", help="recall by vectors too, where the model is at hand")
    given = parser.parse_args(arguments_given)
    asked = measure(
        WORLDS[given.world],
        kinds=given.kinds.split(","),
        forms=given.forms.split(","),
        budgets=given.budgets,
        turns=given.turns,
        facts=given.facts,
        seed=given.seed,
        embeddings=resolve_embeddings("auto") if given.embed else None,
    )
    shown = ("world", "turns", "facts", "seed", "embed")
    report = report_of(asked, settings={name: getattr(given, name) for name in shown})
    show(report)
    finish([report], given.json)
    return [report]


if __name__ == "__main__":
    main()
