"""The default embedder: the vectors of Chroma's own, without its padding."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.models import embeddings as module
from langchain_tiered_memory.models.embeddings import (
    MiniLMEmbeddings,
    fetch_minilm,
    find_minilm,
    fingerprint_of,
    resolve_embeddings,
)
from tests.embedders import FixedEmbeddings, HashingEmbeddings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FOLDER = find_minilm()
needs_model = pytest.mark.skipif(
    FOLDER is None, reason="the MiniLM files are neither in TIERED_MEMORY_MINILM_DIR nor in Chroma's cache"
)

ODD_TEXTS = [
    *("", " ", "a", "word " * 1000, "x" * 5000, "nul \x00", "a\n\n\tb", "[CLS] [PAD]"),
    *("東京で会いましょう", "🙂 naïve café"),
]


class ChromasOwn(ONNXMiniLM_L6_V2):
    """Chroma's embedding function, on the files that are at hand."""

    if FOLDER is not None:
        DOWNLOAD_PATH = FOLDER.parent
        EXTRACTED_FOLDER_NAME = FOLDER.name

    def _download_model_if_not_exists(self) -> None:
        """Never."""


class Wrapping(Embeddings):
    def __init__(self, inner: Embeddings) -> None:
        self.underlying_embeddings = inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.underlying_embeddings.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.underlying_embeddings.embed_query(text)


MINILM, CHROMAS = MiniLMEmbeddings(FOLDER), ChromasOwn()
"""Each loads its model once, when it is asked first."""


@pytest.fixture
def minilm() -> MiniLMEmbeddings:
    return MINILM


@pytest.fixture
def chromas_own() -> ChromasOwn:
    return CHROMAS


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without the model's files."""
    monkeypatch.delenv(module.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.delenv(module.DOWNLOAD_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    module._say_lexical_only.cache_clear()


@needs_model
def test_the_vectors_are_those_of_chromas_own_function(minilm: MiniLMEmbeddings, chromas_own: ChromasOwn) -> None:
    texts = [*ODD_TEXTS, *(f"sentence {number} about " + "ships and harbours " * (number % 17) for number in range(20))]
    ours = np.array(minilm.embed_documents(texts))
    assert np.abs(ours - np.array(chromas_own(texts))).max() < 1e-5
    assert np.allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-5)


@needs_model
@settings(max_examples=8)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), min_size=1, max_size=5))
def test_any_text_has_the_vector_that_chroma_gives_it(texts: list[str]) -> None:
    ours, theirs = np.array(MINILM.embed_documents(texts)), np.array(CHROMAS(texts))
    assert np.abs(ours - theirs).max() < 1e-5


@needs_model
def test_a_text_has_one_vector_whatever_stands_beside_it(minilm: MiniLMEmbeddings) -> None:
    together = np.array(minilm.embed_documents(["short", "much longer " * 60, "short"]))
    assert np.abs(together[0] - np.array(minilm.embed_query("short"))).max() < 1e-5
    assert np.abs(together[0] - together[2]).max() < 1e-6
    assert minilm.embed_documents([]) == []


@needs_model
def test_of_a_huge_text_the_first_tokens_count_and_lone_surrogates_are_taken(minilm: MiniLMEmbeddings) -> None:
    for head in ("the head of a very long text " * 100, "東京で会いましょう。" * 100):
        assert np.allclose(minilm.embed_query(head), minilm.embed_query(head * 3000), atol=1e-5)
    assert len(minilm.embed_query("lone \ud800 surrogate")) == 384


@needs_model
def test_a_long_text_of_few_tokens_is_read_to_its_end(minilm: MiniLMEmbeddings, chromas_own: ChromasOwn) -> None:
    for text in (
        "z" * 40_000 + " end of it",
        " " * 40_000 + "end of it",
        ("y" * 20_000 + " ") * 3 + "end",
        ("q" * 200 + ".") * 300,
    ):
        assert np.abs(np.array(minilm.embed_query(text)) - chromas_own([text])[0]).max() < 1e-5


@needs_model
async def test_the_async_methods_give_the_same(minilm: MiniLMEmbeddings) -> None:
    assert await minilm.aembed_query("ships") == minilm.embed_query("ships")
    assert await minilm.aembed_documents(["ships", "sails"]) == minilm.embed_documents(["ships", "sails"])


@needs_model
def test_threads_that_come_first_together_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    load = module._open_model
    monkeypatch.setattr(module, "_open_model", lambda place: loads.append(place) or load(place))
    embedder = MiniLMEmbeddings(FOLDER)
    with ThreadPoolExecutor(6) as pool:
        vectors = list(pool.map(embedder.embed_query, ["same text"] * 12))
    assert len(loads) == 1
    assert all(np.allclose(vector, vectors[0], atol=1e-6) for vector in vectors)


def test_importing_and_constructing_loads_no_model_library() -> None:
    script = (
        "import sys; from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings; "
        "MiniLMEmbeddings().fingerprint; "
        "from langchain_tiered_memory.recall.chroma.index import ChromaIndex; "
        "ChromaIndex(MiniLMEmbeddings(), '/nowhere/at/all', namespace='n').close(); "
        "print([name for name in ('onnxruntime', 'tokenizers', 'chromadb', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "onnxruntime" not in done.stdout
    assert "tokenizers" not in done.stdout
    assert "chromadb" not in done.stdout


@pytest.mark.usefixtures("nowhere")
def test_without_the_files_there_is_no_embedder() -> None:
    assert find_minilm() is None
    assert resolve_embeddings("auto") is None


@pytest.mark.usefixtures("nowhere")
def test_a_download_is_announced_and_its_failure_leaves_search_lexical(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ARCHIVE_URL", "http://127.0.0.1:9/onnx.tar.gz")
    monkeypatch.setenv(module.DOWNLOAD_VARIABLE, "1")
    with caplog.at_level(logging.WARNING):
        assert resolve_embeddings("auto") is None
    messages = [record.message for record in caplog.records]
    assert "fetching" in messages[0]
    assert "could not be downloaded" in messages[-1]
    with pytest.raises(SettingsError, match=module.DIRECTORY_VARIABLE):
        fetch_minilm()


def test_the_archive_is_the_one_that_chroma_names() -> None:
    download = module.minilm_download()
    assert download.url == ONNXMiniLM_L6_V2.MODEL_DOWNLOAD_URL
    assert download.sha256 == ONNXMiniLM_L6_V2._MODEL_SHA256
    # Chroma asks for the home once, when it is imported: what is below it is compared.
    theirs = ONNXMiniLM_L6_V2.DOWNLOAD_PATH / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    below_home = len((".cache", "chroma", "onnx_models", "all-MiniLM-L6-v2", "onnx"))
    assert download.target.parts[-below_home:] == theirs.parts[-below_home:]


@pytest.mark.usefixtures("nowhere")
def test_an_embedder_without_files_says_where_to_put_them(tmp_path: Path) -> None:
    for place in (None, tmp_path / "empty"):
        with pytest.raises(SettingsError, match="TIERED_MEMORY_MINILM_DIR"):
            MiniLMEmbeddings(place).embed_query("text")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_text("damaged")
    with pytest.raises(SettingsError, match="cannot be read"):
        MiniLMEmbeddings(tmp_path).embed_query("text")


@pytest.mark.usefixtures("nowhere")
def test_files_are_looked_for_in_the_argument_then_the_variable_then_chromas_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def planted(folder: Path) -> Path:
        folder.mkdir(parents=True)
        for name in ("model.onnx", "tokenizer.json"):
            (folder / name).touch()
        return folder

    cached = planted(tmp_path / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx")
    assert find_minilm() == cached
    monkeypatch.setenv(module.DIRECTORY_VARIABLE, str(tmp_path / "missing"))
    assert find_minilm() == cached
    named = planted(tmp_path / "named" / "onnx")
    monkeypatch.setenv(module.DIRECTORY_VARIABLE, str(tmp_path / "named"))
    assert find_minilm() == named
    assert find_minilm(tmp_path / "elsewhere") is None
    assert find_minilm(planted(tmp_path / "argument")) == tmp_path / "argument"


def test_what_was_chosen_is_what_is_used() -> None:
    own = HashingEmbeddings()
    assert resolve_embeddings(own) is own
    assert resolve_embeddings(None) is None
    with pytest.raises(SettingsError, match="LangChain Embeddings"):
        resolve_embeddings("minilm")  # type: ignore[arg-type]


def test_a_fingerprint_tells_class_model_and_dimension_and_is_the_same_in_every_process() -> None:
    script = "from tests.embedders import *; from langchain_tiered_memory.models.embeddings import *; "
    done = subprocess.run(
        [sys.executable, "-c", f"{script}print(fingerprint_of(HashingEmbeddings()))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == fingerprint_of(HashingEmbeddings())
    kinds = [HashingEmbeddings(), HashingEmbeddings(32), HashingEmbeddings(model="other"), FixedEmbeddings([1.0])]
    assert len({fingerprint_of(kind) for kind in kinds}) == 4
    assert fingerprint_of(Wrapping(HashingEmbeddings())) == fingerprint_of(HashingEmbeddings())
    assert fingerprint_of(MiniLMEmbeddings("/nowhere")) == MiniLMEmbeddings().fingerprint


def test_a_string_names_the_embeddings_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
    found = module.named_embeddings("openai:text-embedding-3-small")
    assert type(found).__name__ == "OpenAIEmbeddings"
    with TieredMemory.open(embeddings="openai:text-embedding-3-small") as memory:
        assert memory.status().embedder == "OpenAIEmbeddings"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nonsense", 'a provider and a model such as "openai:text-embedding-3-small"'),
        ("nobody:model", "install the provider's package"),
    ],
)
def test_a_string_that_names_no_embeddings_is_refused_with_the_remedy(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        TieredMemory.open(embeddings=name)


def test_embeddings_named_by_a_string_need_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(SettingsError, match="pip install langchain"):
        TieredMemory.open(embeddings="openai:text-embedding-3-small")
