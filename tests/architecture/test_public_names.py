"""What the package offers by name, and that offering it costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import langchain_tiered_memory

HEAVY = ("chromadb", "sqlalchemy", "langgraph", "onnxruntime", "tokenizers", "langchain_core", "pydantic", "numpy")


def fresh(code: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_names_are_sorted_and_each_can_be_imported() -> None:
    names = langchain_tiered_memory.__all__
    assert names == sorted(set(names))
    for name in names:
        assert getattr(langchain_tiered_memory, name) is not None
    assert dir(langchain_tiered_memory) == names


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="TieredMemori"):
        langchain_tiered_memory.TieredMemori  # noqa: B018 - reading it is the test


def test_each_public_class_says_what_it_is() -> None:
    named = {name: getattr(langchain_tiered_memory, name) for name in langchain_tiered_memory.__all__}
    assert [name for name, found in named.items() if isinstance(found, type) and not found.__doc__] == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = fresh(f"import sys, langchain_tiered_memory; print([one for one in {HEAVY!r} if one in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.slow
def test_the_engine_loads_neither_chroma_nor_langgraph_nor_onnx_before_it_needs_them() -> None:
    code = (
        "import sys\n"
        "from langchain_tiered_memory import Settings, TieredMemory, TreeSettings\n"
        "memory = TieredMemory.open(settings=Settings(tree=TreeSettings(background=False)))\n"  # the worker needs them
        "memory.session('s').add_messages([('user', 'hello')])\n"
        "memory.session('s').context('')\n"
        "heavy = 'chromadb langgraph onnxruntime langchain jinja2 starlette'.split()\n"
        "print([one for one in heavy if one in sys.modules])"
    )
    assert fresh(code).strip() == "[]"
