from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings

from benchmarks.cached_vectors import CachedEmbeddings
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.models.embeddings import fingerprint_of


class Lengths(Embeddings):
    """Embeds a text as its length, and remembers what it was asked."""

    fingerprint = "lengths"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_each_text_is_embedded_once() -> None:
    inner = Lengths()
    cached = CachedEmbeddings(inner)
    assert cached.embed_documents(["aa", "b", "aa"]) == [[2, 1], [1, 1], [2, 1]]
    assert cached.embed_documents(["b", "aa"]) == [[1, 1], [2, 1]]
    assert sorted(inner.asked) == ["aa", "b"]


def test_a_file_keeps_vectors_for_the_next_run(tmp_path: Path) -> None:
    CachedEmbeddings(Lengths(), path=tmp_path / "v.db").embed_documents(["aa"])
    again = Lengths()
    assert CachedEmbeddings(again, path=tmp_path / "v.db").embed_documents(["aa"]) == [[2, 1]]
    assert again.asked == []


def test_the_cache_counts_as_the_embedder_itself() -> None:
    assert fingerprint_of(CachedEmbeddings(Lengths())) == "lengths"


def test_a_file_that_is_no_cache_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "v.db").write_text("something else, long enough to be no empty database file at all" * 20)
    with pytest.raises(StorageError, match="name another file"):
        CachedEmbeddings(Lengths(), path=tmp_path / "v.db")
