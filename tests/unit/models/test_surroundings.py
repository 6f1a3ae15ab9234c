"""What a memory has to do without, and when it says so."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from langchain_tiered_memory.models.surroundings import look_around


def gaps(**given: Any) -> tuple[str, ...]:
    told: dict[str, Any] = {"chroma": None, "counter": None, "path": None, "in_memory": False} | given
    return look_around(DeterministicFakeEmbedding(size=4), **told).gaps


def test_a_database_without_a_folder_has_no_place_for_vectors_unless_one_is_named() -> None:
    (why,) = gaps()
    assert "no folder beside it" in why


@pytest.mark.parametrize("given", [{"chroma": "vectors"}, {"path": Path("m.db")}, {"in_memory": True}])
def test_a_place_for_vectors_is_no_gap(given: dict[str, Any]) -> None:
    assert gaps(**given) == ()


def test_an_encrypted_database_says_that_vectors_would_not_be() -> None:
    (why,) = gaps(path=Path("m.db"), is_encrypted=True)
    assert "encrypted" in why
    assert gaps(path=Path("m.db"), is_encrypted=True, chroma="vectors") == ()
