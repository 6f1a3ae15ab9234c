"""Builders of memories, conversations and settings for tests at the engine's interface."""

from __future__ import annotations

import atexit
import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, message_to_dict

from langchain_tiered_memory.memory import Session, TieredMemory
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import CondensationSettings, LevelSettings, Settings, TreeSettings
from tests.call_styles import told
from tests.store_builders import ENCRYPTED, key_of_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import Entry, SessionRef, Summary
    from tests.call_styles import CallStyle

NOW = 1_700_000_000.0


def small_levels(messages: int = 4, sources: int = 3) -> tuple[LevelSettings, ...]:
    """Levels so small that a short history reaches the third."""
    return (
        LevelSettings(messages=messages, tokens=400, strategy="detailed", target_ratio=0.5, max_tokens=120),
        LevelSettings(sources=sources, strategy="thematic", target_ratio=0.3, max_tokens=120),
        LevelSettings(sources=2, strategy="executive", target_ratio=0.2, max_tokens=80),
    )


def quick_settings(
    *, messages: int = 4, sources: int = 3, background: bool = False, eager: bool = False, **changes: Any
) -> Settings:
    """Small levels, and no work behind the test's back unless it asks for it.

    Args:
        messages: Messages that make a level-1 summary.
        sources: Level-1 summaries that make one of level 2.
        background: Whether the worker runs.
        eager: Whether a model writes what falls due at once, not when a view needs it.
        **changes: Further fields of `TreeSettings`.
    """
    tree = TreeSettings(
        background=background,
        levels=changes.pop("levels", small_levels(messages, sources)),
        **changes,
    )
    return Settings(
        tree=tree,
        condensation=CondensationSettings(eager=eager),
    )


def open_memory(where: str | Path | None = None, **choices: Any) -> TieredMemory:
    """A memory without vectors, with small levels and the estimating counter, where nothing else is asked for."""
    chosen: dict[str, Any] = {
        "embeddings": None,
        "settings": quick_settings(),
        "token_counter": EstimatingCounter(),
    }
    if str(where).endswith(ENCRYPTED):
        chosen["encryption_key"] = key_of_tests
    return TieredMemory.open(where, **(chosen | choices))


@contextlib.contextmanager
def open_prepared(prepare: Callable[..., object], *arguments: Any, **choices: Any) -> Iterator[Session]:
    """A session that `prepare(session, *arguments)` filled, in a memory of its own on a copy of one prepared before.

    A process fills it once; the settings and other `choices` have to be those that it is filled with.
    """
    key = (prepare, arguments)
    if key not in _prepared:
        folder = Path(tempfile.mkdtemp(prefix="prepared-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with open_memory(folder / "memory.db", **choices) as memory:
            prepare(memory.session("s"), *arguments)
        _prepared[key] = folder / "memory.db"
    with (
        tempfile.TemporaryDirectory(prefix="copied-") as copied,
        open_memory(shutil.copy(_prepared[key], copied), **choices) as memory,
    ):
        yield memory.session("s")


_prepared: dict[tuple[Any, ...], Path] = {}


def shown_within(session: Session, max_tokens: int, call_style: CallStyle = "sync") -> None:
    """Show a session in so little room that a model is asked for its summaries, and let them be written."""
    told(call_style, session.context, "", max_tokens=max_tokens)
    told(call_style, session.flush)


SUBJECTS = ("harbour", "crane", "ferry", "pilot", "customs", "warehouse", "anchor", "quay", "tide", "lighthouse")


def turn(number: int) -> list[BaseMessage]:
    """A question and its answer, each with something of its own in it."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    return [
        HumanMessage(f"What do we know about the {subject} of order {1000 + number}?", id=f"q{number}"),
        AIMessage(
            f"The {subject} of order {1000 + number} was checked by team {number % 7}. "
            f"It needs {number * 3 + 1} new bolts before Monday, and the invoice is F-{number:04d}.",
            id=f"a{number}",
        ),
    ]


def tool_turn(number: int, *, results: int = 2) -> list[BaseMessage]:
    """A question answered by way of parallel tool calls."""
    calls = [
        {"name": "look_up", "args": {"order": number, "part": n}, "id": f"call_{number}_{n}"} for n in range(results)
    ]
    return [
        HumanMessage(f"Look up order {1000 + number} in every register.", id=f"q{number}"),
        AIMessage("", tool_calls=calls, id=f"c{number}"),
        *(
            ToolMessage(f"register {n} says {number * 10 + n}", tool_call_id=f"call_{number}_{n}", id=f"r{number}_{n}")
            for n in range(results)
        ),
        AIMessage(f"Order {1000 + number} stands in all {results} registers.", id=f"a{number}"),
    ]


def conversation(turns: int, *, start: int = 0) -> list[BaseMessage]:
    """Turns `start` to `start + turns`."""
    return [message for number in range(start, start + turns) for message in turn(number)]


def store_of(memory: TieredMemory) -> SqlStore:
    """The store below the interface, where a test looks at rows or plants a fault."""
    return memory.core.runtime.store


def ref_of(session: Session) -> SessionRef:
    """The session as the stores know it; it must have a message."""
    found = session.core.runtime.store.transcript.find(session.session_id)
    assert found is not None
    return found


def entries_of(session: Session) -> list[Entry]:
    """Every entry of a session, of every track."""
    return session.core.runtime.store.transcript.entries(ref_of(session))


def summaries_of(session: Session) -> list[Summary]:
    """Every summary of a session, by level and place."""
    return session.core.runtime.store.tree.all(ref_of(session))


def covered_seqs(summary: Summary, by_id: dict[str, Summary], seq_of: dict[str, int]) -> list[int]:
    """The entries that a summary stands for, all the way down, by what it names."""
    if summary.level == 1:
        return [seq_of[one] for one in summary.sources]
    return [seq for source in summary.sources for seq in covered_seqs(by_id[source], by_id, seq_of)]


def counted(messages: Sequence[BaseMessage], *, tools: Sequence[Any] = ()) -> int:
    """Raw tokens of a request by a counter of the test's own: 3 that prime the answer, schemas, messages."""
    counter = EstimatingCounter()
    return 3 + counter.count_tools(tools) + sum(counter.count_message(message) for message in messages)


def as_bytes(message: BaseMessage) -> bytes:
    """What a provider would be sent of a message, for comparing prefixes byte for byte."""

    def plain(value: object) -> str:
        return repr(sorted(map(repr, value)) if isinstance(value, set | frozenset) else value)

    return json.dumps(message_to_dict(message), default=plain).encode()
