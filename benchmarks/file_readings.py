"""An agent with deepagents' own file tools comes back to its files: what of their readings is sent only once?

The agent reads files of this package, a few in each turn, and changes one now and then; which ones is drawn. Every
request is recorded. A result in whose place a line leads to the same text above is held against that text.

    python -m benchmarks.file_readings --turns 30 --budgets 16000,64000
"""

from __future__ import annotations

import importlib.util
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import langchain_tiered_memory
from benchmarks.reporting import Grid, Report, Target, arguments, finish, numbers, show
from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES = 8
_READ_IN_A_TURN = 3
_SEED = 7


class _Model(ScriptedModel):
    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:  # noqa: ANN401 - the base class's own
        return self.bind(tools=list(tools), **options)


@dataclass(slots=True, kw_only=True)
class Sent:
    """What the requests of one run took."""

    budget: int
    requests: int = 0
    tokens: int = 0
    readings: int = 0
    """Results of reading, over all requests."""
    pointed: int = 0
    """Of those, sent as a line."""
    saved_tokens: int = 0
    astray: int = 0
    """Lines that lead to no text."""


def play(*, turns: int, budget: int, changes: float) -> Sent:
    """One run at one budget."""
    from deepagents import create_deep_agent  # noqa: PLC0415 - no part of the extra
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - as above

    counter, sent = best_counter("gpt-4"), Sent(budget=budget)
    whole: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, TieredMemory.open(None, embeddings=None) as memory:
        paths = _copied(Path(folder))
        model = _Model(answers=_script(paths, turns=turns, changes=changes))
        agent = create_deep_agent(
            model=model,
            tools=[],
            backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
            middleware=[TieredMemoryMiddleware(memory, max_tokens=budget)],
            checkpointer=InMemorySaver(),
        )
        for turn in range(turns):
            asked: Any = {"messages": [("user", f"Go on with step {turn}.")]}
            state = agent.invoke(asked, {"configurable": {"thread_id": "run"}})
            whole |= {one.tool_call_id: one.text for one in state["messages"] if isinstance(one, ToolMessage)}
    for prompt in model.prompts:
        sent.requests += 1
        sent.tokens += sum(counter.count_message(message) for message in prompt)
        for at, message in enumerate(prompt):
            if isinstance(message, ToolMessage) and message.name == "read_file":
                _compare(sent, prompt[:at], message, whole[message.tool_call_id], count=counter.count_text)
    return sent


def _compare(sent: Sent, above: Sequence[BaseMessage], message: ToolMessage, text: str, *, count: Any) -> None:  # noqa: ANN401 - counts a text
    sent.readings += 1
    if "has the same text as message" in message.text and message.text != text:
        sent.pointed += 1
        sent.saved_tokens += count(text) - count(message.text)
        sent.astray += not any(text in one.text for one in above)


def _copied(folder: Path) -> list[str]:
    """Some modules of this package as the agent's project."""
    source = Path(langchain_tiered_memory.__file__).parent
    chosen = sorted(source.glob("*.py"), key=lambda path: (-path.stat().st_size, path.name))[:_FILES]
    for path in chosen:
        shutil.copy(path, folder / path.name)
    return [f"/{path.name}" for path in chosen]


def _script(paths: Sequence[str], *, turns: int, changes: float) -> list[AIMessage]:
    drawn = random.Random(_SEED)
    said: list[AIMessage] = []
    for turn in range(turns):
        read = drawn.sample(paths, _READ_IN_A_TURN)
        calls = [("read_file", {"file_path": path}) for path in read]
        if drawn.random() < changes:
            edit = {"old_string": "from __future__", "new_string": f"# {turn}\nfrom __future__"}
            calls.append(("edit_file", {"file_path": read[0], **edit}))
        said += [_call(name, args, f"call_{turn}_{place}") for place, (name, args) in enumerate(calls)]
        said.append(AIMessage(f"Step {turn} is done."))
    return said


def _call(name: str, args: dict[str, Any], identity: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": identity}])


def report_of(runs: Sequence[Sent], *, settings: dict[str, Any]) -> Report:
    """The report."""
    rows = [
        ("requests", *(one.requests for one in runs)),
        ("tokens sent", *(one.tokens for one in runs)),
        ("file readings in them", *(one.readings for one in runs)),
        ("of those a line that leads to the same text above", *(one.pointed for one in runs)),
        ("tokens saved", *(one.saved_tokens for one in runs)),
        (
            "of what would have been sent else, %",
            *(100 * one.saved_tokens / max(one.tokens + one.saved_tokens, 1) for one in runs),
        ),
    ]
    astray = sum(one.astray for one in runs)
    return Report(
        benchmark="file readings",
        about="an agent with deepagents' own tools that comes back to its files",
        settings=settings,
        grids=(
            Grid(
                title="by the budget of a request",
                columns=("", *(f"{one.budget:,}" for one in runs)),
                rows=tuple(rows),
            ),
        )
        if runs
        else (),
        figures={"runs": [{name: getattr(one, name) for name in Sent.__slots__} for one in runs]},
        targets=(Target(aim="every line leads to its text", measured=f"{astray} astray", met=not astray),),
        remarks=() if runs else ("left out: deepagents is not installed (pip install deepagents)",),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--budgets", type=numbers, default=[16_000, 64_000], help="of a request, in tokens")
    parser.add_argument("--changes", type=float, default=0.3, help="share of the turns in which a file is changed")
    asked = parser.parse_args(arguments_given)
    has_deepagents = importlib.util.find_spec("deepagents") is not None
    runs = [play(turns=asked.turns, budget=budget, changes=asked.changes) for budget in asked.budgets if has_deepagents]
    report = report_of(runs, settings={"turns": asked.turns, "changes": asked.changes})
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
