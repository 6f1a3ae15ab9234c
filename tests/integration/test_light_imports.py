"""What importing the package loads, and what it costs beside LangChain's messages and models with SQLAlchemy."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOO_EARLY = (
    "chromadb", "httpx", "langchain", "langchain_classic", "langchain_core.callbacks", "langchain_core.runnables",
    "langchain_core.tracers", "langgraph", "langsmith", "numpy", "onnxruntime", "opentelemetry", "pandas",
    "pydantic_settings", "rich", "snowballstemmer", "sqlalchemy", "tenacity", "tiktoken", "tokenizers", "typer",
    "zstandard",
)  # fmt: skip
OURS = "from langchain_tiered_memory import TieredMemory"
THEIRS = "import langchain_core.messages, langchain_core.language_models, sqlalchemy"


def in_a_new_process(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_a_memory_loads_neither_engine_nor_models_nor_stores() -> None:
    asked = f"import sys; {OURS}; print([name for name in {TOO_EARLY!r} if name in sys.modules])"
    assert in_a_new_process(asked).strip() == "[]"


def test_importing_a_memory_loads_few_modules_of_its_own() -> None:
    asked = f"import sys; {OURS}; print(sum(name.startswith('langchain_tiered_memory') for name in sys.modules))"
    assert int(in_a_new_process(asked)) < 30


def test_opening_a_memory_that_searches_by_words_loads_no_vector_store_and_no_client() -> None:
    heavy = ("chromadb", "httpx", "langgraph", "onnxruntime", "pandas", "rich", "typer")
    program = (
        f"import sys; {OURS}; memory = TieredMemory.open(embeddings=None); "
        "memory.session('s').add_messages(['The crane is yellow.']); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert in_a_new_process(program).strip() == "[]"


@pytest.mark.slow
def test_importing_a_memory_takes_no_more_than_langchain_and_sqlalchemy_take() -> None:
    # Processor time of whole processes, alternating: a loaded machine changes it little, and both alike.
    timed = "import time; {}; print(time.process_time())"
    ours, theirs = [], []
    for _ in range(3):
        ours.append(float(in_a_new_process(timed.format(OURS))))
        theirs.append(float(in_a_new_process(timed.format(THEIRS))))
    assert min(ours) < 1.3 * min(theirs), (ours, theirs)


def test_what_is_named_in_annotations_is_found_where_the_memory_is_imported_from() -> None:
    program = (
        "from langchain_tiered_memory import memory; "
        "print(memory.Session.__name__, memory.Settings.__name__, hasattr(memory, 'Nothing'))"
    )
    assert in_a_new_process(program).strip() == "Session Settings False"
