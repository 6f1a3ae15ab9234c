"""Which subject may import which, read from the source: what runs, not what only type checkers see."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import langchain_tiered_memory

ROOT = Path(langchain_tiered_memory.__file__).parent
PACKAGE = "langchain_tiered_memory"

ORDER = (
    {"_version", "events", "telemetry", "types", "text", "display"},
    {"errors", "border"},
    {"settings", "reports", "protocols"},
    {"messages", "driver"},
    {"extensions"},
    {"sql"},
    {"models"},
    {"transcript"},
    {"summaries"},
    {"recall", "runs"},
    {"items", "across"},
    {"context"},
    {"forgetting"},
    {"maintenance"},
    {"runtime"},
    {"sessions", "engine"},
    {"pages"},
    {"memory", "session"},
    {"integrations", "conversations", "testing", "plots"},
    {"cli", "evaluation"},
    {"__init__", "__main__"},
)
"""Subjects from the ground up: folders, and modules that stand beside them. Each imports what stands no higher."""
PLACE = {subject: place for place, subjects in enumerate(ORDER) for subject in subjects}

STORES = {
    "sql/",
    "transcript/",
    "summaries/facts/rows.py",
    "summaries/facts/store.py",
    "summaries/tree/",
    "recall/",
    "runs/",
    "context/outcome_store.py",
    "forgetting/",
    "items/store.py",
    "across/store.py",
    "maintenance/",
    "runs/plans.py",
}
"""Where modules stand that read and write the database."""
THREADS = {"threading", "asyncio", "queue", "concurrent"}
THREADS_MAY = {
    "driver.py": "drives both kinds of call, and leaves a hanging model behind",
    "testing.py": "counts the calls of a scripted model from any thread",
    "sql/forks.py": "makes forks wait for threads",
    "sql/": "connections are for every thread",
    "recall/chroma/": "clients are for every thread, and Chroma starts its own",
    "maintenance/worker.py": "is the background thread, and a run's",
    "pages/server.py": "waits between two looks at what is new",
    "recall/indexing.py": "asks a silent server again behind the questions",
    "runs/files/accesses.py": "notes accesses, and what came back, from any thread",
    "runs/files/monitor.py": "notes measures from any thread",
    "transcript/outbox.py": "subscribes from any thread",
    "context/sections/registry.py": "sections are registered and asked for from any thread",
    "sessions/opening.py": "opens the index once, whoever asks first",
    "models/circuit_breaker.py": "is asked from any thread",
    "models/embeddings.py": "loads a model once",
    "models/token_counters.py": "loads an encoding once",
    "integrations/legacy/classic.py": "remembers the runs of a chain, whichever thread runs them",
    "integrations/legacy/runnable_history.py": "writes what a cancelled answer left, whoever cancels again",
    "integrations/graph/node_cache.py": "hands contexts between nodes, whichever thread runs them",
    "integrations/graph/tracks.py": "numbers tasks that run side by side, in threads or not",
    "summaries/engine/": "extensions, breakers and bounds are asked from any thread, and may hang",
    "summaries/writers/behind.py": "keeps the last requests for whichever thread asks",
}
LANGCHAIN_MAY = (
    "messages/",
    "models/",
    "integrations/",
    "sessions/",
    "cli/",
    "evaluation/",
    "pages/",
    "conversations/",
    "summaries/prompts/",
    "summaries/writers/model_calls.py",
    "context/layout.py",
    "context/pieces.py",
    "context/view/call_folding.py",
    "driver.py",
    "memory.py",
    "session.py",
    "engine.py",
    "testing.py",
)
"""Where messages are read, counted, rendered or sent."""
PURE = {"time", "random", "os", "sqlite3", "sqlalchemy", "chromadb", "threading", "asyncio", "socket", "secrets"}
TIME_MAY = {
    "driver.py",
    "telemetry.py",
    "sql/forks.py",
    "sessions/opening.py",
    "summaries/engine/engine.py",
    "summaries/writers/model.py",
    "summaries/writers/model_calls.py",
}
FILES_IN_A_FOLDER = 18


@cache
def modules() -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")))


def subject_of(module: str) -> str:
    return module.split("/", maxsplit=1)[0].removesuffix(".py")


@cache
def imported(module: str) -> frozenset[str]:
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
                found.update(f"{child.module}.{alias.name}" for alias in child.names)
            else:
                walk(child)

    walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
    return frozenset(found)


def inside(module: str) -> set[str]:
    """Modules of ours that a module imports, as paths."""
    known = {one.removesuffix(".py").removesuffix("/__init__").replace("/", "."): one for one in modules()}
    names = {name.removeprefix(f"{PACKAGE}.") for name in imported(module) if name.startswith(f"{PACKAGE}.")}
    return {known[name] for name in names if name in known}


def outside(module: str) -> set[str]:
    """Top-level names of other packages that a module imports."""
    return {name.split(".")[0] for name in imported(module)} - {PACKAGE}


def test_every_module_has_its_place_in_the_order() -> None:
    assert {subject_of(one) for one in modules()} == PLACE.keys()


def test_a_module_imports_only_what_stands_no_higher() -> None:
    upward = {
        module: [one for one in inside(module) if PLACE[subject_of(one)] > PLACE[subject_of(module)]]
        for module in modules()
    }
    assert {module: higher for module, higher in upward.items() if higher} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {one: inside(one) - {one} for one in modules() if one != "__init__.py"}
    left = {one: {other for other in others if other in graph} for one, others in graph.items()}
    while free := [one for one, others in left.items() if not others]:
        for one in free:
            del left[one]
        for others in left.values():
            others.difference_update(free)
    assert left == {}


def test_no_folder_holds_more_than_one_can_read_at_a_glance() -> None:
    folders = [str(Path(one).parent) for one in modules() if not one.endswith("__init__.py")]
    assert {folder for folder in folders if folders.count(folder) > FILES_IN_A_FOLDER} == set()


def test_every_folder_says_what_it_is_about() -> None:
    folders = {one for one in modules() if one.endswith("/__init__.py")}
    assert {f"{Path(one).parent}/__init__.py" for one in modules() if "/" in one} == folders
    assert [one for one in folders if not ast.get_docstring(ast.parse((ROOT / one).read_text(encoding="utf-8")))] == []


def test_threads_and_event_loops_are_known_to_few() -> None:
    users = {one for one in modules() if outside(one) & THREADS or "sql/forks.py" in inside(one)}
    assert [one for one in users if not one.startswith(tuple(THREADS_MAY))] == []


def test_langchain_stands_only_where_messages_are_read_counted_rendered_or_sent() -> None:
    users = {one for one in modules() if any(name.startswith("langchain") for name in outside(one))}
    assert [one for one in users if not one.startswith(LANGCHAIN_MAY)] == []


def test_sql_stands_only_in_the_stores_and_what_they_are_made_of() -> None:
    users = {one for one in modules() if "sqlalchemy" in outside(one)}
    assert users
    assert [one for one in users if not one.startswith(tuple(STORES))] == []


def test_what_does_no_reading_or_writing_is_pure() -> None:
    """A module that is no store and imports none, no driver, no lock: nothing in it asks the machine for anything."""
    rules = ("text/", "types/", "messages/", "context/view/", "context/budget/", "context/compaction/")
    impure = [one for one in modules() if one.startswith(rules) and outside(one) & PURE]
    assert impure == []


def test_no_module_of_the_engine_names_the_time_itself() -> None:
    users = {one for one in modules() if "time" in outside(one)}
    told = ("sql/", "recall/chroma/", "cli/", "evaluation/")
    assert {one for one in users if not one.startswith(told)} <= TIME_MAY, "time is passed in"
