"""What it costs to look across threads: processor time beside a context that does not, and how it grows.

A user has more and more threads of made-up talk, and asks in a new one. Before each step the thread gets a message, as
between two requests of a conversation: what is kept must be found to be still right. Time is the
processor's, of all threads: sections are rendered in one of their own. No model, no vectors.

    python -m benchmarks.across_cost --threads 10,50,200
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

from benchmarks.conversations import conversation
from benchmarks.reporting import Grid, Report, arguments, finish, numbers, show
from langchain_tiered_memory import OtherSessions, Settings, TieredMemory, TreeSettings, memory_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_USER = "zoe"
_PERSONAL = (
    "I prefer {} roast coffee, and my sister is called {}.",
    "I'm allergic to {}, and I live near {}.",
    "Always answer me in {} words; my dog is called {}.",
)
_QUESTIONS = ("Which figure was agreed?", "What is my sister called?", "Which coffee do I like?")
_BUDGET = 4000
_EACH = 20
"""Messages of a thread."""


def _filled(path: Path, threads: int) -> TieredMemory:
    memory = TieredMemory.open(path, embeddings=None, settings=Settings(tree=TreeSettings(background=False)))
    for number in range(threads):
        said = list(conversation(_EACH - 1, seed=number).messages)
        words = [one for one in str(said[0].content).split() if one.isalpha()][:2] or ["dark", "Anna"]
        personal = _PERSONAL[number % len(_PERSONAL)].format(f"{words[0]}{number}", f"{words[-1]}{number}")
        memory.session(f"thread {number}", user=_USER).add_messages([*said, HumanMessage(personal)])
    memory.flush()
    return memory


def _steps(memory: TieredMemory, session: Any) -> dict[str, Callable[[str], object]]:  # noqa: ANN401 - a handle
    recall = memory_tools(memory, across=True)[0]
    config: Any = {"configurable": {"thread_id": session.session_id, "user_id": _USER}}
    return {
        "a context": lambda query: session.context(query, max_tokens=_BUDGET),
        "a context with the section": lambda query: session.context(query, max_tokens=_BUDGET),
        "memory.search(user=)": lambda query: memory.search(query, user=_USER),
        "memory.facts(user=)": lambda _: memory.facts(user=_USER),
        "memory.facts(user=), nothing new": lambda _: memory.facts(user=_USER),
        "recall(scope='user')": lambda query: recall.invoke({"query": query, "scope": "user"}, config),
    }


def _took(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _measured(threads: int, *, rounds: int) -> tuple[dict[str, list[float]], int]:
    """Milliseconds of each step, and the tokens of the section."""
    took: dict[str, list[float]] = {}
    tokens = 0
    with tempfile.TemporaryDirectory() as folder, _filled(Path(folder) / "memory.db", threads) as memory:
        session = memory.session("asks", user=_USER)
        for number in range(rounds + 1):
            query = _QUESTIONS[number % len(_QUESTIONS)]
            for step, call in _steps(memory, session).items():
                if "nothing new" not in step:
                    session.add_messages([HumanMessage(f"{query} ({number}, {step})")])
                if "section" in step:
                    memory.sections.register(OtherSessions())
                milliseconds = 1000 * _took(lambda call=call, query=query: call(query))
                if "section" in step:
                    section = session.context(query, max_tokens=_BUDGET).section("other_sessions")
                    tokens = max(tokens, section.tokens if section is not None else 0)
                    memory.sections.remove("other_sessions")
                if number:  # the first round reads code and texts for the first time
                    took.setdefault(step, []).append(milliseconds)
    return took, tokens


def measure(*, threads: Sequence[int], rounds: int) -> Report:
    """Take every step `rounds` times for each number of threads."""
    rows: dict[str, list[object]] = {}
    tokens: list[int] = []
    for count in threads:
        took, shown = _measured(count, rounds=rounds)
        tokens.append(shown)
        plain = statistics.median(took["a context"])
        for step, each in took.items():
            median = statistics.median(each)
            rows.setdefault(step, [step]).extend((round(median, 1), round(median / plain, 2)))
    columns = ("step", *(label for count in threads for label in (f"{count} threads, CPU ms", "of a context")))
    return Report(
        benchmark="across_cost",
        about="looking across the threads of one user",
        settings={"threads": list(threads), "messages each": _EACH, "rounds": rounds, "budget": _BUDGET},
        grids=(Grid(title="by step", columns=columns, rows=tuple(tuple(row) for row in rows.values())),),
        figures={"tokens of the section": tokens},
        remarks=(
            "medians; each ratio is to a context without the section, of as many threads",
            f"the section took at most {max(tokens, default=0)} of {_BUDGET:,} tokens",
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=numbers, default=[10, 50, 200])
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args(arguments_given)
    report = measure(threads=asked.threads, rounds=asked.rounds)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
