"""How often an honest summary is called unsound, and how often a bad one is not; likewise marks on figures and names.

Honest are: extracts, the same with words dropped, a stand-in's rewording, and the summaries that a real model wrote,
where the files have them (`summary` and `observations` of a session). Bad are: filler, another conversation's summary,
half a sentence, a refusal, the prompt, a message repeated, another language, empty sections. The least scores were
chosen on one half of the files ("chosen on") and are checked on the other.

    python -m benchmarks.unsound conversations/
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.conversations import conversation
from benchmarks.paraphraser import Paraphraser
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from langchain_tiered_memory.conversations.dates import parse_date
from langchain_tiered_memory.driver import run
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import TreeSettings, ValidationSettings
from langchain_tiered_memory.summaries.checks.unsourced import evidence, marked
from langchain_tiered_memory.summaries.prompts.batch_prompt import build_batch
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.writers.extractive import ExtractiveCondenser
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part, SourceText

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.protocols import TokenCounter

_CHUNK = 10
_MOST_CHUNKS = 12  # of one conversation: many short files tell more than one long one
_BEGINS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
_DROPPED_EACH = 3
_MOST_FALSE_ALARMS, _MOST_MISSES, _MOST_FALSE_MARKS, _LEAST_MARKED = 0.02, 0.1, 0.03, 0.8
_FILLER = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. " * 8
_REFUSAL = "It is not possible to comply here. Such material falls outside of what may be processed under the policy."
_GERMAN = (
    "Die Beteiligten sprachen über das Vorhaben und einigten sich darauf, die Unterlagen bis zum Herbst zu prüfen. "
    "Danach soll der Vorstand entscheiden, ob die Werkstatt erweitert wird oder nicht. "
) * 3
_EMPTY = "## Overview\n\n## Key points\nNone.\n\n## Decisions\nNone.\n\n## Unresolved\nNone."
_INVENTED = ("The total came to {:,} euros.", "It was booked as invoice Q-{}.", "The account number is {}.")
_SMALL_TALK = (
    (("Hi!", "Hello! How are you?", "Fine, thanks, and you?", "Great."), "They greeted each other."),
    (
        ("Good morning :)", "Morning! Slept well?", "Like a stone, haha", "Lucky you", "See you later", "Bye!"),
        "The two friends exchanged pleasantries and said goodbye.",
    ),
    (
        ("Thanks so much!", "You're welcome.", "Really, you saved my day.", "Any time!"),
        "The user expressed gratitude, and the assistant answered politely.",
    ),
    (
        ("lol", "haha what", "nothing, just bored", "me too, this week drags on", "tell me about it"),
        "Both are bored and joke about how long the week feels.",
    ),
    (
        ("It's so hot today", "I know, I can't even think", "Ice cream?", "Yes please!!", "Meet you there"),
        "They complain about the heat and meet for ice cream.",
    ),
)

_Real: TypeAlias = tuple[str, CondenseJob, str]
"""A kind of text that a model wrote, what it stands for, and the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One text against its sources."""

    kind: str
    is_honest: bool
    job: CondenseJob
    text: str
    held_back: bool
    """Whether the least scores were not chosen on it."""


def cases(folder: Path | None, *, counter: TokenCounter, messages: int) -> Iterator[Case]:
    """The cases of the files of a folder; made-up conversations where none is named."""
    if folder is None:
        made: list[tuple[list[CondenseJob], list[_Real]]] = [
            (_made_up(messages, seed, counter), []) for seed in range(4)
        ]
    else:
        made = [_from_file(path, counter) for path in sorted(folder.rglob("*.json"))]
        made = [one for one in made if one[0]]
    for number, (jobs, real) in enumerate(made):
        held_back = bool(number % 2)
        strangers = made[(number + max(1, len(made) // 2)) % len(made)]
        yield from _of_jobs(jobs, strangers[0], counter=counter, held_back=held_back)
        for kind, job, text in real:
            yield Case(kind=kind, is_honest=True, job=job, text=text, held_back=held_back)
            if strangers[1]:
                other = strangers[1][len(text) % len(strangers[1])][2]
                yield Case(kind="another one's, by a model", is_honest=False, job=job, text=other, held_back=held_back)
    for number, (said, told) in enumerate(_SMALL_TALK):
        job = _job([("user", one) for one in said], counter)
        yield Case(kind="small talk", is_honest=True, job=job, text=told, held_back=bool(number % 2))


def _of_jobs(
    jobs: Sequence[CondenseJob], strangers: Sequence[CondenseJob], *, counter: TokenCounter, held_back: bool
) -> Iterator[Case]:
    extractive = ExtractiveCondenser(counter.count_text)
    for place, job in enumerate(jobs):
        told = run(extractive.condense(job)).text
        words = told.split(" ")
        honest = {
            "extract": told,
            "every third word dropped": " ".join(
                word for at, word in enumerate(words) if at % _DROPPED_EACH != _DROPPED_EACH - 1
            ),
        }
        foreign = run(extractive.condense(strangers[place % len(strangers)])).text
        first = next((line for line in told.splitlines() if not line.startswith("#")), told).split(" ")
        bad = {
            "filler": _FILLER,
            "another one's extract": foreign,
            "half a sentence": " ".join(first[: min(6, len(first) // 2)]),
            "refusal": _REFUSAL,
            "prompt": str(build_batch([Part(job=job)])[0].text)[:2000],
            "message repeated": job.sources[place % len(job.sources)].text,
            "another language": _GERMAN,
            "empty sections": _EMPTY,
        }
        for kind, text in honest.items():
            yield Case(kind=kind, is_honest=True, job=job, text=text, held_back=held_back)
        for kind, text in bad.items():
            yield Case(kind=kind, is_honest=False, job=job, text=text, held_back=held_back)


def _made_up(messages: int, seed: int, counter: TokenCounter) -> list[CondenseJob]:
    held = conversation(messages, seed=seed)
    said = [("user" if turn.message.type == "human" else "assistant", str(turn.message.text)) for turn in held.turns]
    return [_job(said[at : at + _CHUNK], counter) for at in range(0, len(said) - _CHUNK + 1, _CHUNK)][:_MOST_CHUNKS]


def reworded(messages: int, *, counter: TokenCounter) -> Iterator[Case]:
    """What the rewording stand-in writes of made-up conversations, asked as a model is."""
    for seed in range(4):
        held = conversation(messages, seed=seed)
        writer = Paraphraser(held, counter=counter, most_tokens=1000, seed=seed)
        for job in _made_up(messages, seed, counter):
            text = str(writer.model.invoke(build_batch([Part(job=job)])).text)
            yield Case(kind="reworded by a stand-in", is_honest=True, job=job, text=text, held_back=bool(seed % 2))


def _from_file(path: Path, counter: TokenCounter) -> tuple[list[CondenseJob], list[_Real]]:
    """Chunks of a conversation, and what a model wrote of its sessions; nothing where the file is of another kind."""
    held: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(held, dict) or not isinstance(held.get("sessions"), list):
        return [], []
    jobs: list[CondenseJob] = []
    real: list[_Real] = []
    for session in held["sessions"]:
        said = [(str(turn["speaker"]), str(turn["text"])) for turn in session["turns"]]
        at = parse_date(session["date"]).timestamp() if session.get("date") else _BEGINS_AT
        jobs += [_job(said[first : first + _CHUNK], counter, at=at) for first in range(0, len(said), _CHUNK)]
        whole = _job(said, counter, at=at)
        if session.get("summary"):
            real.append(("summary by a model", whole, str(session["summary"])))
        notes = session.get("observations")
        if notes:
            text = "\n".join(f"- {one[0]}" for listed in notes.values() for one in listed)
            real.append(("notes by a model", whole, text))
    jobs = [job for job in jobs if len(job.sources) > 3][:: max(1, len(jobs) // _MOST_CHUNKS)]  # noqa: PLR2004 - a rest
    return jobs[:_MOST_CHUNKS], real


def _job(said: Sequence[tuple[str, str]], counter: TokenCounter, *, at: float = _BEGINS_AT) -> CondenseJob:
    sources = tuple(
        SourceText(
            id=str(place), text=text, tokens=counter.count_text(text), at=at, seq=place + 1, speaker=who,
            role="assistant" if who == "assistant" else "user",
        )
        for place, (who, text) in enumerate(said)
    )  # fmt: skip
    tokens = sum(source.tokens for source in sources)
    size = target_and_cap(TreeSettings().level(1), tokens)
    return CondenseJob(
        level=1, strategy="detailed", sources=sources, facts=(), target_tokens=size.target_tokens,
        max_tokens=size.max_tokens, session_id="s", title=None, first_at=at, last_at=at, message_count=len(sources),
        participants=tuple(dict.fromkeys(who for who, _ in said)),
    )  # fmt: skip


def _marks(case: Case, text: str) -> int:
    times = tuple(source.at for source in case.job.sources)
    found = evidence([source.text for source in case.job.sources], times, case.job.known)
    return len(marked(text, found)[1]) if found is not None else 0


def measure(folder: Path | None, *, messages: int = 240, seed: int = 0) -> Report:
    """Judge every case as the engine does, with the default least scores."""
    counter = best_counter()
    settings = ValidationSettings()
    judged: defaultdict[tuple[bool, str, bool], list[bool]] = defaultdict(list)
    marks: defaultdict[tuple[str, bool], list[bool]] = defaultdict(list)
    chance = random.Random(seed)
    for case in [*cases(folder, counter=counter, messages=messages), *reworded(messages, counter=counter)]:
        refused = case.job.unsound(case.text, settings) is not None
        judged[case.is_honest, case.kind, case.held_back].append(refused)
        if case.is_honest and not case.kind.startswith("every"):
            marks[case.kind, case.held_back].append(_marks(case, case.text) > 0)
            planted = chance.choice(_INVENTED).format(chance.randrange(10_000, 99_999))
            marks["invented figure", case.held_back].append(_marks(case, planted) > 0)
    return _report(judged, marks, folder=folder, messages=messages)


def _report(
    judged: dict[tuple[bool, str, bool], list[bool]],
    marks: dict[tuple[str, bool], list[bool]],
    *,
    folder: Path | None,
    messages: int,
) -> Report:
    rows, figures = [], []
    for honest in (True, False):
        for kind in dict.fromkeys(kind for is_honest, kind, _ in judged if is_honest == honest):
            both = [judged.get((honest, kind, held), []) for held in (False, True)]
            rates = [_share(one) if honest else _missed(one) for one in both]
            what = "false alarms" if honest else "misses"
            rows.append((kind, what, sum(map(len, both)), *(_percent(rate) for rate in rates)))
            figures.append(
                {
                    "kind": kind,
                    "honest": honest,
                    "texts": sum(map(len, both)),
                    "chosen_on": rates[0],
                    "checked_on": rates[1],
                }
            )
    marked_rows = [
        (
            kind,
            len(marks.get((kind, False), [])) + len(marks.get((kind, True), [])),
            *(_percent(_share(marks.get((kind, held), []))) for held in (False, True)),
        )
        for kind in dict.fromkeys(kind for kind, _ in marks)
    ]
    alarms = [one for (honest, _, held), found in judged.items() if honest and held for one in found]
    misses = [not one for (honest, _, held), found in judged.items() if not honest and held for one in found]
    wrong = [one for (kind, held), found in marks.items() if held and not kind.startswith("inv") for one in found]
    right = marks.get(("invented figure", True), [])
    return Report(
        benchmark="unsound summaries",
        about="honest summaries that are refused, bad ones that are not; marks on figures and names",
        settings={"conversations": str(folder) if folder else "made up", "messages": messages},
        grids=(
            Grid(title="judged", columns=("", "rate of", "texts", "chosen on", "checked on"), rows=tuple(rows)),
            Grid(title="texts with a mark", columns=("", "texts", "chosen on", "checked on"), rows=tuple(marked_rows)),
        ),
        figures={
            "judged": figures, "false_alarms": _share(alarms), "misses": _share(misses),
            "false_marks": _share(wrong), "invented_marked": _share(right),
        },
        targets=(
            _target("false alarms", _share(alarms), most=_MOST_FALSE_ALARMS),
            _target("misses", _share(misses), most=_MOST_MISSES),
            _target("honest summaries with a mark", _share(wrong), most=_MOST_FALSE_MARKS),
            _target("invented figures without a mark", _missed(right), most=1 - _LEAST_MARKED),
        ),
    )  # fmt: skip


def _target(what: str, rate: float | None, *, most: float) -> Target:
    return Target(
        aim=f"{what}, on what was held back: {most:.0%} at most",
        measured=_percent(rate),
        met=rate <= most if rate is not None else None,
    )


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _missed(found: Sequence[bool]) -> float | None:
    return 1 - sum(found) / len(found) if found else None


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} %"


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="conversations; made-up ones without it")
    parser.add_argument("--messages", type=int, default=240, help="of each made-up conversation")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.folder, messages=asked.messages)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
