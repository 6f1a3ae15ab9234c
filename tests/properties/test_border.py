"""Whatever a public verb is given: it takes it, or refuses it in words of ours that name the argument.

The verbs are found by reflection, and what each takes is read from its signature: one that is added is tried too.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

import langchain_tiered_memory
from langchain_tiered_memory.context.sections.kept_files import KeptFiles
from langchain_tiered_memory.context.sections.registry import SectionRegistry
from langchain_tiered_memory.errors import SettingsError, TieredMemoryError
from langchain_tiered_memory.integrations import file_runs, histories
from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.classic import ConversationTieredMemory
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.retriever import TieredMemoryRetriever
from langchain_tiered_memory.memory import Run, Session, TieredMemory
from langchain_tiered_memory.settings import Settings
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.types.arguments import Scope, Such
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from pathlib import Path

WRONG: tuple[Any, ...] = (
    *(None, "", "\0", "\ud800", "word", True, -1, 0, 1.5, math.nan, math.inf, -math.inf, 2**70, b"x", object()),
    *([], {}, [None], [5], [""], ["\0"], ["word"], {"a": 1}, HumanMessage("alone"), Scope(sight_tokens=True)),
)
"""What people, models and configurations hand over by mistake."""
VERBS = (TieredMemory, Session, Run)
MADE = (
    *(TieredMemoryMiddleware, file_runs.FileRunMiddleware, TieredChatMessageHistory, TieredMemoryRetriever),
    ConversationTieredMemory,
)
MODELS = (TieredMemoryRetriever, ConversationTieredMemory)
"""Made by pydantic: their fields are their arguments."""
OTHERS = {
    *(name for name in langchain_tiered_memory.__all__ if name.endswith("Error") or name == "__version__"),
    *("Context", "Entry", "Event", "FailureReason", "Hit", "MemoryCheckpoint", "Outcome", "OutcomeKind", "Receipt"),
    *("Section", "Summary", "Task", "VerifyReport", "Zone", "TieredState", "CondenseJob", "Condensed"),
    *("Settings", "TreeSettings"),  # checked by pydantic: `tests/unit`
    *("OtherSessions", "TieredStore"),  # a section; a store of LangGraph's, with checks of its own
    *("CondensationEngine", "MiniLMEmbeddings", "zone_in"),  # takes extensions; paths of files; any state
}
"""Public names that are values, or have checks of their own."""
_CHANGES = {"close", "aclose", "end", "aend"}


def verbs_of(face: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, member in inspect.getmembers(face, callable):
        ours = (getattr(member, "__module__", None) or "").startswith("langchain_tiered_memory")
        if not name.startswith("_") and ours and name not in _CHANGES and len(inspect.signature(member).parameters) > 0:
            yield name, member


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions, and what makes integrations."""
    named = {name: getattr(langchain_tiered_memory, name) for name in langchain_tiered_memory.__all__}
    found = {name: one for name, one in named.items() if inspect.isfunction(one) and name not in OTHERS}
    for module in (histories, file_runs):
        found |= {
            name: one
            for name, one in vars(module).items()
            if inspect.isfunction(one) and not name.startswith("_") and one.__module__ == module.__name__
        }
    return found | {one.__name__: one for one in MADE} | {"Settings.named": Settings.named, "open": TieredMemory.open}


def hints_of(verb: Callable[..., Any]) -> dict[str, Any]:
    """What each argument is annotated with, names of type checkers resolved."""
    if verb in MODELS:
        own: Any = types.SimpleNamespace(__annotations__=inspect.get_annotations(verb))
        return {
            name: hint
            for name, hint in get_type_hints(own, vars(sys.modules[verb.__module__]), include_extras=True).items()
            if not name.startswith(("_", "model_config"))
        }
    plain = inspect.unwrap(verb.__init__ if isinstance(verb, type) else verb)  # type: ignore[misc]
    parameters = inspect.signature(plain).parameters
    hinted: Any = types.SimpleNamespace(
        __annotations__={name: one.annotation for name, one in parameters.items() if one.annotation is not one.empty}
    )
    module = sys.modules[plain.__module__]
    later = {name: getattr(module, name) for name in getattr(module, "_READ_LATER", ())}
    hints = get_type_hints(hinted, later | vars(module), include_extras=True)
    for name in [name for name, one in parameters.items() if one.kind is one.VAR_KEYWORD]:
        changes = hints.pop(name)
        assert get_origin(changes) is Unpack, f"{verb} takes any name"
        hints |= get_type_hints(get_args(changes)[0], include_extras=True)
    return hints


def fits(hint: Any, value: Any) -> bool:
    """Whether an argument that is annotated so may be this."""
    kind, inner = get_origin(hint) or hint, [one for one in get_args(hint) if one is not ...]
    if kind in (Any, object) or getattr(kind, "_is_protocol", False):
        return True
    if kind is Annotated:
        return fits(inner[0], value) and all(one.fits(value) for one in inner[1:] if isinstance(one, Such))
    if kind in (Union, types.UnionType):
        return any(fits(one, value) for one in inner)
    if kind is Literal:
        return isinstance(value, str) and value in inner
    if kind in (Sequence, Iterable, Collection, tuple):
        return isinstance(value, list) and all(fits(inner[0], one) for one in value)
    return fits_plainly(kind, value)


def fits_plainly(kind: type, value: Any) -> bool:
    if kind in (int, float) and (isinstance(value, bool) or not isinstance(value, int | float)):
        return False
    if kind is int:
        return isinstance(value, int) and abs(value) < 2**63
    if kind is float:
        return abs(value) < 2**63
    if issubclass(kind, dict):  # a `TypedDict` too
        return isinstance(value, Mapping)
    if isinstance(value, Scope):
        return False  # the one that is tried is wrong inside
    return isinstance(value, kind)


def refused_by(verb: Callable[..., Any], given: dict[str, Any]) -> str | None:
    """In which words; `None` where it is taken."""
    try:
        done = verb(**given)
        if inspect.iscoroutine(done):
            asyncio.run(done)
    except TieredMemoryError as error:
        return str(error)
    return None


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Something of each kind that a verb asks for, by the argument's name."""
    monkeypatch.chdir(tmp_path)
    with open_memory(None) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("hi", id="m1"), AIMessage("yes", id="m2")])
        run = memory.run("s", roots=tmp_path, background=False)
        yield {
            "memory": memory,
            "session": session,
            "run": run,
            "self": {TieredMemory: memory, Session: session, Run: run, SectionRegistry: memory.sections},
            "opened": run.keep("kept", "words"),
            "config": {"configurable": {"thread_id": "s"}},
            "checkpointer": InMemorySaver(),
            "target": InMemoryChatMessageHistory(),
            "runnable": RunnableLambda(str),
            "listener": print,
            "section": KeptFiles(),
            "settings": Settings(),
            "state": {},
            **dict.fromkeys(("session_id", "query", "operation", "name", "path", "content", "asked", "model"), "s"),
            **dict.fromkeys(("message_id", "summary_id"), "m1"),
            **dict.fromkeys(("user", "fact_id", "statement"), "u"),
            "verdict": "good",
            "new_key": lambda: b"k" * 32,
            "records": [],
            **dict.fromkeys(("task_id",), "t"),
            **dict.fromkeys(("tokens", "saved_tokens"), 100),
            **{name: [] for name in ("texts", "messages", "source")},
        }


def tried(verb: Callable[..., Any], good: dict[str, Any]) -> Iterator[str]:
    """Gives each argument of a verb each wrong value; tells of what should have been refused in words, and was not."""
    called = inspect.signature(verb).parameters if verb not in MODELS else {}
    required = [name for name, one in called.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    needed = {name: good[name] for name in ("memory", "session_id") if verb in MODELS} | {
        name: good[name] for name in required
    }
    for name, hint in hints_of(verb).items():
        for value in WRONG:
            may_be = fits(hint, value)
            if may_be and inspect.iscoroutinefunction(verb):
                continue  # its twin does the same work
            said = refused_by(verb, needed | {name: value})
            if not may_be and (said is None or name not in said):
                yield f"{name}={value!r}: {said}"


@pytest.mark.parametrize("face", [*VERBS, SectionRegistry], ids=lambda face: face.__name__)
def test_a_verb_takes_what_its_signature_says_and_refuses_the_rest_by_name(face: type, good: dict[str, Any]) -> None:
    wrong = {}
    for name, _ in verbs_of(face):
        if name in ("open", "aopen", "attach"):  # makes a memory: among the functions; of the package's own
            continue
        if found := list(tried(getattr(good["self"][face], name), good)):
            wrong[name] = found
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(functions()))
def test_a_function_or_constructor_does_too(name: str, good: dict[str, Any]) -> None:
    assert list(tried(functions()[name], good)) == []


def test_what_is_public_is_tried() -> None:
    known = {one.__name__ for one in (*VERBS, *MADE)} | OTHERS | set(functions())
    assert set(langchain_tiered_memory.__all__) <= known, "a new public name: add it to what is tried, or to OTHERS"


def test_a_missing_and_an_unknown_argument_are_named(good: dict[str, Any]) -> None:
    for call, said in (
        (good["memory"].session, "missing a required argument: 'session_id'; it takes .session_id, "),
        (
            lambda: good["session"].search("x", limit=3),
            r"unexpected keyword argument 'limit'; it takes \(query, \*, k=",
        ),
        (lambda: good["session"].search("x", 3), r"too many positional arguments; it takes \(query, \*"),
        (lambda: good["session"].messages(k=3), r"unexpected keyword argument 'k'; it takes \(\)"),
        (lambda: good["memory"].status("x"), r"too many positional arguments; it takes \(\)"),
        (lambda: good["run"].report("x"), r"too many positional arguments; it takes \(\)"),
    ):
        with pytest.raises(TieredMemoryError, match=said) as caught:
            call()
        assert isinstance(caught.value, TypeError), "as Python itself would say it"


def test_extensions_of_a_wrong_kind_are_refused(good: dict[str, Any]) -> None:
    engine: CondensationEngine = good["memory"].engine
    for verb in (engine.register_plugin, engine.register_validator, engine.register_hook, engine.register_telemetry):
        for value in (None, 5, "word", [], object()):
            with pytest.raises(TieredMemoryError):
                verb(value)


@pytest.mark.parametrize("make", [CondensationEngine.create, CondensationEngine.create_custom])
def test_an_engine_is_made_of_what_its_signature_says(make: Callable[..., Any]) -> None:
    settings = Settings().condensation
    assert make(settings, attempts=1).name
    for wrong in (
        *({"settings": 5}, {"settings": None}, {"settings": Settings()}, {"attempts": -1}, {"attempts": True}),
        *({"max_open_seconds": math.nan}, {"count_text": 5}, {"plugins": "word"}, {"models": [5]}, {"extractive": 5}),
    ):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            make(**({"settings": settings} | wrong))


def test_what_python_takes_for_the_same_is_taken(good: dict[str, Any], tmp_path: Path) -> None:
    class Words(str):
        __slots__ = ()

    session: Session = good["session"]
    assert session.messages() == good["memory"].session(Words("s")).messages()
    assert session.search("hi", levels={0}, tracks=("main",))
    assert session.search("hi", levels=iter([0]), tracks=dict.fromkeys(["main"]).keys())
    assert good["memory"].flush(1).pending == 0
    (tmp_path / "a.txt").write_text("words")
    for roots in (tmp_path, str(tmp_path), [tmp_path], (one for one in [tmp_path])):
        run = good["memory"].run("s", roots=roots, critical=tmp_path / "a.txt", background=False)
        assert run.start().report().not_loaded == ()
        assert run.open(tmp_path / "a.txt").text == "words"
    with suppress(ImportError):
        import numpy as np  # noqa: PLC0415 - where it is installed

        assert session.search("hi", k=np.int64(3))
        assert good["memory"].flush(np.float32(1)).pending == 0
