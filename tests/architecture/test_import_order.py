"""Which room may import which, read from the source: what runs, not what only type checkers see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import langchain_tiered_memory

ROOT = Path(langchain_tiered_memory.__file__).parent
PACKAGE = "langchain_tiered_memory"

VALUES = {
    "records", "contexts", "reports", "errors", "settings", "protocols", "drafts", "outcomes", "runs", "extensions",
}  # fmt: skip
MAY_IMPORT = {
    "records": set[str](),
    "reports": set[str](),
    "outcomes": {"records"},
    "contexts": set[str](),
    "runs": set[str](),
    "errors": {"records", "outcomes"},
    "settings": {"records", "errors", "settings"},
    "protocols": {"records", "errors"},
    "drafts": {"records", "errors"},
    "decisions": VALUES | {"decisions"},
    # A condenser is a flow that asks a model, and the flow that condenses drives it: these three are one floor.
    "prompts": VALUES | {"decisions", "prompts", "condensers"},
    "condensers": VALUES | {"decisions", "prompts", "condensers", "flows"},
    "flows": VALUES | {"decisions", "condensers", "flows"},
    # The index carries the embedder's fingerprint, which `embeddings` tells.
    "stores": {"records", "reports", "outcomes", "runs", "errors", "protocols", "drafts", "stores", "embeddings"},
    "embeddings": {"errors", "records"},
    "token_counters": VALUES | {"decisions"},
}
THREADS_MAY = {
    "flows/asking.py": "drives both colours, and leaves a hanging model behind",
    "sessions/worker.py": "is the background thread",
    "flows/listeners.py": "subscribes from any thread",
    "flows/standing.py": "remembers views for every thread that asks",
    "sessions/opening.py": "opens the index once, whoever asks first",
    "memory.py": "remembers what was sent, for whichever thread stores the answer",
    "embeddings.py": "loads a model once",
    "testing.py": "counts the calls of a scripted model from any thread",
    "chain_faces/open_turns.py": "remembers the runs of a chain, whichever thread runs them",
    "chain_faces/turn_history.py": "writes what a cancelled answer left, whoever cancels again",
    "graph_faces/handover.py": "hands contexts between nodes, whichever thread runs them",
    "graph_faces/notices.py": "remembers what was told, whichever thread tells it",
    "condensers/attending.py": "registers extensions from any thread",
    "condensers/breaker.py": "is asked from any thread",
    "condensers/engine_metrics.py": "counts from any thread",
    "condensers/guarded.py": "leaves a hanging extension behind",
    "condensers/metering.py": "keeps answers for whichever thread asks again",
    "condensers/rate_bound.py": "is asked from any thread",
    "condensers/registry.py": "registers plugins from any thread",
    "condensers/writers.py": "makes breakers for whichever thread asks first",
}
LANGCHAIN_MAY = {
    "decisions/call_shortening.py": "cuts arguments of calls",
    "decisions/content_blocks.py": "counts message types",
    "decisions/counting.py": "counts message types",
    "decisions/message_moulds.py": "stores message types",
    "decisions/message_repairs.py": "renders message types",
    "decisions/message_text.py": "renders message types",
    "decisions/messages.py": "stores message types",
    "decisions/request.py": "puts a request together",
    "decisions/snapshots.py": "keeps messages as LangChain's dicts",
    "decisions/tool_schemas.py": "counts tools",
    "decisions/validity.py": "mends sequences of messages",
    "decisions/validity_rules.py": "checks sequences of messages",
    "condensers/model_calls.py": "calls a chat model",
    "prompts/building.py": "builds a prompt of messages",
    "flows/asking.py": "calls a chat model",
    "embeddings.py": "is LangChain embeddings",
    "token_counters.py": "hands messages to a user's counter",
    "chat_history.py": "a face",
    "classic.py": "a face",
    "histories.py": "a face",
    "middleware.py": "a face",
    "memory.py": "a face",
    "retriever.py": "a face",
    "session.py": "a face",
    "tools.py": "a face",
    "testing.py": "a face",
}
LANGCHAIN_FACES = ("chain_faces/", "graph_faces/", "sessions/", "cli/", "evaluation/", "conversations/")


def modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))


def room_of(module: str) -> str:
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


def imported(module: str) -> set[str]:
    """Dotted names that a module imports when it runs, in functions too."""
    found: set[str] = set()

    def walk(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    walk(other)
            elif isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module} imports relatively"
                found.add(child.module or "")
                found.update(f"{child.module}.{alias.name}" for alias in child.names if child.module == PACKAGE)
            else:
                walk(child)

    walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
    return found


def outside(module: str) -> set[str]:
    """Top-level names of other packages that a module imports."""
    return {name.split(".")[0] for name in imported(module)} - {PACKAGE}


@pytest.mark.parametrize("module", [one for one in modules() if room_of(one) in MAY_IMPORT])
def test_a_room_imports_only_what_stands_below_it(module: str) -> None:
    inside = {name.split(".")[1] for name in imported(module) if name.startswith(f"{PACKAGE}.")}
    assert inside - MAY_IMPORT[room_of(module)] - {"_version"} == set()


def test_threads_and_event_loops_are_known_to_few() -> None:
    users = {one for one in modules() if outside(one) & {"threading", "asyncio", "queue", "concurrent"}}
    assert {one for one in users if room_of(one) != "stores"} <= THREADS_MAY.keys()


def test_langchain_stands_only_where_messages_are_counted_rendered_or_sent() -> None:
    users = {one for one in modules() if any(name.startswith("langchain") for name in outside(one))}
    there = {one for one in users if not one.startswith(LANGCHAIN_FACES)}
    assert there <= LANGCHAIN_MAY.keys()


def test_sql_stands_only_in_the_stores() -> None:
    assert {room_of(one) for one in modules() if "sqlalchemy" in outside(one)} == {"stores"}


def test_decisions_are_pure() -> None:
    impure = {"time", "random", "os", "sqlite3", "sqlalchemy", "chromadb", "threading", "asyncio", "socket", "secrets"}
    assert [one for one in modules() if room_of(one) == "decisions" and outside(one) & impure] == []


def test_no_module_of_the_engine_names_the_time_itself() -> None:
    allowed = {
        "sessions/opening.py",
        "condensers/engine.py",
        "flows/asking.py",
        "condensers/llm.py",
        "condensers/model_calls.py",
    }
    users = {one for one in modules() if "time" in outside(one) and room_of(one) not in ("stores", "cli", "evaluation")}
    assert users <= allowed, "time is passed in; only a default for a monotonic clock may be named"
