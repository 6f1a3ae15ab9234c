"""Runs inside of one checkout and says what a request costs there; `hops` starts it with that checkout on the path.

It knows nothing of the package but its public names, so that it runs on older and newer checkouts alike. It reads what
it is to do as JSON from standard input and writes what it found as JSON to standard output.

A session without background work gets an agent's run, message by message, and is asked for a context before each of
the agent's own messages; then the same run goes through an agent with the middleware. What falls due is condensed
between two requests, as the background would. Of each request are counted the transactions and statements that
SQLAlchemy tells of, and the processor's time. In a pass of its own a profile hook notes which functions run: with a
hook, times would be worth nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import typing
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, messages_from_dict
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

import langchain_tiered_memory
from benchmarks.agent_replay import Actor, agent_turns
from benchmarks.hops_meters import PACKAGE_FOLDER, Asker, Measured, SqlTally, traced
from langchain_tiered_memory import Session, TieredMemory, TieredMemoryMiddleware
from langchain_tiered_memory.errors import TieredMemoryError
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TRACED = 7
"""Requests of each kind that are traced: the last ones of a run; their median is told."""
_BUDGET_TOKENS = 8000
_WARM_UP = 40


@contextmanager
def _memory() -> Iterator[TieredMemory]:
    """An empty one on a file; words alone, nothing in the background."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(tree=TreeSettings(background=False))
        with TieredMemory.open(Path(folder) / "memory.db", embeddings=None, settings=settings) as memory:
            yield memory


def _context(session: Session, query: str | None) -> object:
    return session.context(query, max_tokens=_BUDGET_TOKENS)


def play_session(messages: Sequence[BaseMessage], query: str | None, asker: Asker) -> None:
    """Add messages one by one; before each of the agent's own ask for a context."""
    with _memory() as memory:
        session = memory.session("run")
        for place, message in enumerate(messages):
            if place and isinstance(message, AIMessage):
                asker.ask(partial(_context, session, query))
            session.add_messages([message], wait=True)


def trace_session(messages: Sequence[BaseMessage]) -> dict[str, list[dict[str, int]]]:
    """As `play_session`, with recall; the last few requests are traced instead of measured."""
    found: dict[str, list[dict[str, int]]] = {"add_messages": [], "context": []}
    asked = [place for place, message in enumerate(messages) if place and isinstance(message, AIMessage)]
    last = set(asked[-TRACED:])
    with _memory() as memory:
        session = memory.session("run")
        for place, message in enumerate(messages):
            watched = place in last
            if place in asked:
                with suppress(TieredMemoryError), traced(found["context"] if watched else None):
                    _context(session, None)
            with traced(found["add_messages"] if watched else None):
                session.add_messages([message])
            session.flush()
    return found


def play_agent(
    messages: Sequence[BaseMessage], *, recall: bool, request: Callable[[int, Callable[[], object]], None]
) -> None:
    """Have an agent say what a transcript says; `request` gets how many requests follow, and what makes this one."""
    model = Actor()
    turns = agent_turns(messages)
    with _memory() as memory:
        middleware: Any = TieredMemoryMiddleware(memory, max_tokens=_BUDGET_TOKENS, recall=recall)
        agent = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
        for place, (arrived, answer) in enumerate(turns, start=1):
            model.will_say(answer)
            state: Any = {"messages": arrived}
            request(len(turns) - place, partial(agent.invoke, state, {"configurable": {"thread_id": "run"}}))
            memory.flush()


def trace_agent(messages: Sequence[BaseMessage]) -> list[dict[str, int]]:
    """The last few requests of an agent, traced."""
    found: list[dict[str, int]] = []

    def request(left: int, call: Callable[[], object]) -> None:
        with suppress(TieredMemoryError), traced(found if left < TRACED else None):
            call()

    play_agent(messages, recall=True, request=request)
    return found


def _warm_up(messages: Sequence[BaseMessage], asker: Asker) -> None:
    """Let everything be imported and read that is imported and read once."""
    play_session(messages, None, asker)
    play_agent(messages, recall=True, request=asker.request)


def settings_fields(model: type[BaseModel] = Settings) -> set[str]:
    """`Class.field` of every setting that is no group of settings itself."""
    found: set[str] = set()
    for name, about in model.model_fields.items():
        groups = [one for one in _inside(about.annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
        found |= {field for group in groups for field in settings_fields(group)} or {f"{model.__name__}.{name}"}
    return found


def _inside(annotation: object) -> list[object]:
    """An annotation and all that stands in its brackets."""
    return [annotation, *(inner for part in typing.get_args(annotation) for inner in _inside(part))]


def main() -> None:
    """Read the task, do it, print what was found."""
    task = json.load(sys.stdin)
    runs = [messages_from_dict(rows) for rows in task["runs"]]
    agent_run = runs[0][: task["agent_messages"]]
    tally = SqlTally()
    _warm_up(runs[0][:_WARM_UP], Asker(tally))
    ways: dict[str, Measured] = {}
    for way, query in (("context, no question", ""), ("context, recall", None)):
        asker = Asker(tally)
        for messages in runs:
            play_session(messages, query, asker)
        ways[way] = asker.found
    for way, recall in (("agent, no recall", False), ("agent, recall", True)):
        asker = Asker(tally)
        play_agent(agent_run, recall=recall, request=asker.request)
        ways[way] = asker.found
    found = {
        "package": PACKAGE_FOLDER,
        "traces": {**trace_session(agent_run), "agent request": trace_agent(agent_run)},
        "ways": {way: {name: getattr(one, name) for name in Measured.__slots__} for way, one in ways.items()},
        "public_names": list(langchain_tiered_memory.__all__),
        "settings": sorted(settings_fields()),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
