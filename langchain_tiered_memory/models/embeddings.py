"""The default embedder: Chroma's own MiniLM file, run without padding every text to the model's full length.

Chroma's embedding function pads each text to 256 tokens, and attention costs as much as the padded length. Here, texts
are sorted by length and padded to the longest of their batch. The vectors are the same, and chat-sized texts are
embedded several times faster. Importing this module loads neither onnxruntime nor tokenizers nor Chroma.
"""

from __future__ import annotations

import importlib
import logging
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.models.downloads import Download, fetch
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

logger = logging.getLogger(__name__)

DIRECTORY_VARIABLE = "TIERED_MEMORY_MINILM_DIR"
DOWNLOAD_VARIABLE = "TIERED_MEMORY_DOWNLOAD"

_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""Stops onnxruntime 1.31 from writing an id and a queue of events under the user's home and sending them. Its own
`disable_telemetry_events` comes too late. Earlier versions wrote nothing on Linux, and ignore this."""

_FILES = ("model.onnx", "tokenizer.json")
_ARCHIVE_URL = "https://chroma-onnx-models.s3.amazonaws.com/all-MiniLM-L6-v2/onnx.tar.gz"
_ARCHIVE_SHA256 = "913d7300ceae3b2dbc2c50d1de4baacab4be7b9380491c27fab7418616a16ec3"
"""Both as chromadb 1.5 names them in `ONNXMiniLM_L6_V2`."""
_ARCHIVE_BYTES = 83_000_000
_ARCHIVED_FILES = (
    "config.json", "model.onnx", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt",
)  # fmt: skip
"""All files that Chroma's own function looks for there, so that it also finds the model complete."""
_DIMENSION = 384
_MAX_TOKENS = 256
_BATCH_TEXTS = 64
_BATCH_TOKENS = 4096
_HEAD_CHARACTERS = 32_768
"""Far more than 256 tokens of any prose. Only texts with absurdly long words need more."""
_WORD_CHARACTERS = 100
"""Longer words are one unknown token to this tokenizer, whatever their length."""

_LOADING = forks.Section("the loading of the embedding model")

_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "deployment", "azure_deployment", "repo_id", "dimensions")


class MiniLMEmbeddings(Embeddings, forks.AtFork):
    """`all-MiniLM-L6-v2` as Chroma ships it: 384 dimensions, unit length, the first 256 tokens of a text.

    The vectors equal those of `chromadb.utils.embedding_functions.ONNXMiniLM_L6_V2` to 1e-5, so they work with
    collections made by that function. The files are read once, at first use. The async methods run in an executor.

    Args:
        directory: The folder with `model.onnx` and `tokenizer.json`. With `None`, `TIERED_MEMORY_MINILM_DIR`, else
            Chroma's cache.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = directory
        self._loading = forks.Lock()
        self._parts: tuple[Any, Any] | None = None
        forks.tell(self)

    @property
    def fingerprint(self) -> str:
        """Names model, cut, pooling and dimension. It is the same for every copy of the files."""
        return f"all-MiniLM-L6-v2/onnx/tokens={_MAX_TOKENS}/mean/unit/{_DIMENSION}"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text, in order.

        Raises:
            SettingsError: if the files of the model are missing, or belong to another model.
        """
        if not texts:
            return []
        tokenizer, session = self._load()
        numpy = importlib.import_module("numpy")
        encoded = [_token_ids(tokenizer, text) for text in texts]
        vectors = numpy.empty((len(texts), _DIMENSION), dtype=numpy.float32)
        for batch in _batches([len(ids) for ids in encoded]):
            vectors[batch] = _forward(numpy, session, [encoded[index] for index in batch])
        listed: list[list[float]] = vectors.tolist()
        return listed

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text. Questions are embedded like any other text."""
        return self.embed_documents([text])[0]

    def _load(self) -> tuple[Any, Any]:
        with self._loading, _LOADING:
            if self._parts is None:
                self._parts = _open_model(self._directory)
            return self._parts

    def after_fork_in_child(self) -> None:
        """Read the files again at the next use, because the ONNX session's threads belong to the parent."""
        if self._parts is not None:
            forks.abandon(self._parts)
            self._parts = None


def find_minilm(directory: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder that holds the MiniLM files, or `None`. It looks and never downloads.

    Args:
        directory: The only place to look in. `None` looks in `TIERED_MEMORY_MINILM_DIR`, then in Chroma's cache.
    """
    if directory is not None:
        places = [Path(directory).expanduser()]
    else:
        named = os.environ.get(DIRECTORY_VARIABLE)
        places = [Path(named).expanduser()] if named else []
        places.append(_chroma_cache())
    for place in places:
        for folder in (place, place / "onnx"):
            if all((folder / name).is_file() for name in _FILES):
                return folder
    return None


def minilm_download() -> Download:
    """The download of the MiniLM files: from Chroma's archive into Chroma's own cache."""
    return Download(
        name="the MiniLM embedding model",
        url=_ARCHIVE_URL,
        sha256=_ARCHIVE_SHA256,
        target=_chroma_cache() / "onnx",
        members=_ARCHIVED_FILES,
        about_bytes=_ARCHIVE_BYTES,
    )


def may_download() -> bool:
    """Whether the environment allows downloading MiniLM when it is first needed (`TIERED_MEMORY_DOWNLOAD=1`)."""
    return os.environ.get(DOWNLOAD_VARIABLE) == "1"


def fetch_minilm() -> Path:
    """Download the MiniLM files (about 80 MB) into Chroma's cache and return their folder. The log says so first.

    Raises:
        SettingsError: if the files cannot be downloaded. The message says how to do without them.
    """
    logger.warning("fetching the MiniLM embedding model (about 80 MB) into Chroma's cache")
    try:
        fetch(minilm_download())
    except SettingsError as error:
        msg = (
            f"{error}; put {' and '.join(_FILES)} into a folder named by {DIRECTORY_VARIABLE}, or pass "
            "embeddings=None or an embedder of your own"
        )
        raise SettingsError(msg) from error
    return minilm_download().target


def _chroma_cache() -> Path:
    return Path.home() / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2"


def named_embeddings(name: str) -> Embeddings:
    """The embedder that a string names, such as `"openai:text-embedding-3-small"`, made by `init_embeddings`.

    Raises:
        SettingsError: if langchain, the provider's package or its key is missing, or the name is unknown.
    """
    if ":" not in name:
        msg = (
            f'embeddings cannot be {name!r}: give "auto", None, a LangChain Embeddings, or a provider and a model such '
            'as "openai:text-embedding-3-small"'
        )
        raise SettingsError(msg)
    try:
        from langchain.embeddings import init_embeddings  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = f"embeddings named by a string ({name!r}) need langchain: `pip install langchain`, or pass an Embeddings"
        raise SettingsError(msg) from error
    try:
        return init_embeddings(name)
    except Exception as error:
        # A provider's package: each raises what it likes, such as an error of its own where a key is missing.
        msg = (
            f"the embeddings {name!r} cannot be made ({type(error).__name__}: {error}): install the provider's "
            "package, set its key in the environment, or pass an Embeddings"
        )
        raise SettingsError(msg) from error


def resolve_embeddings(choice: Embeddings | str | None) -> Embeddings | None:
    """The embedder to use. `None` for lexical search only.

    `"auto"` is MiniLM if its files are present or may be downloaded (`TIERED_MEMORY_DOWNLOAD=1`). If not, opening the
    memory has said so (`surroundings.announce`). A failed download is reported here, once per cause.

    Raises:
        SettingsError: if `choice` is something else.
    """
    if choice is None or isinstance(choice, Embeddings):
        return choice
    named: object = choice
    if named != "auto":
        msg = f'embeddings must be "auto", None or a LangChain Embeddings, not {choice!r}'
        raise SettingsError(msg)
    found = find_minilm()
    if found is None and may_download():
        try:
            found = fetch_minilm()
        except SettingsError as error:
            _say_lexical_only(str(error))
    return MiniLMEmbeddings(found) if found is not None else None


def fingerprint_of(embeddings: Embeddings | None) -> str:
    """A name that two embedders share only if their vectors may be in one index. It is equal in every process.

    It is an embedder's own `fingerprint` if it has one. Otherwise it consists of the class, the attributes that usually
    name the model, and the dimension, for which one short text is embedded. A cache around an embedder counts as the
    embedder. No embedder has an empty one.

    Raises:
        Exception: whatever the embedder raises on that text.
    """
    if embeddings is None:
        return ""
    inner = getattr(embeddings, "underlying_embeddings", None)
    if isinstance(inner, Embeddings):
        return fingerprint_of(inner)
    own = getattr(embeddings, "fingerprint", None)
    if isinstance(own, str) and own:
        return own
    kind = type(embeddings)
    named = [
        f"{name}={value}"
        for name in _MODEL_ATTRIBUTES
        if isinstance(value := getattr(embeddings, name, None), str | int)
    ]
    return "/".join([f"{kind.__module__}.{kind.__qualname__}", *named, str(len(embeddings.embed_query("dimension")))])


@cache
def _say_lexical_only(reason: str) -> None:
    logger.warning("search is lexical only: %s", reason)


def _open_model(directory: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    folder = find_minilm(directory)
    if folder is None:
        where = f"in {os.fspath(directory)}" if directory is not None else "present"
        msg = (
            f"the MiniLM files ({', '.join(_FILES)}) are not {where}; name their folder in {DIRECTORY_VARIABLE}, or "
            "call fetch_minilm()"
        )
        raise SettingsError(msg)
    os.environ.setdefault(_NO_TELEMETRY, "1")  # it is read at the import alone
    runtime = importlib.import_module("onnxruntime")
    try:
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        session = runtime.InferenceSession(
            str(folder / "model.onnx"), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        # Both libraries raise bare or private exception types on a damaged file.
        msg = f"the MiniLM files in {folder} cannot be read ({error}); download them again"
        raise SettingsError(msg) from error
    dimension = session.get_outputs()[0].shape[-1]
    if dimension != _DIMENSION:
        msg = f"{folder / 'model.onnx'} has vectors of {dimension} values, MiniLM of {_DIMENSION}: it is another model"
        raise SettingsError(msg)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_MAX_TOKENS)
    return tokenizer, session


def _token_ids(tokenizer: Any, text: str) -> list[int]:  # noqa: ANN401 - tokenizers has no types
    """At most 256 token ids. Only the head of a long text is read, unless the head has fewer tokens than that."""
    if len(text) > _HEAD_CHARACTERS:
        head = tokenizer.encode(_speakable(text[:_HEAD_CHARACTERS]))
        # The cut may fall inside a word, whose tokens would then be others: none of those must be among the kept.
        if len(head.ids) == _MAX_TOKENS and head.offsets[-2][1] < _HEAD_CHARACTERS - _WORD_CHARACTERS:
            ids: list[int] = head.ids
            return ids
    whole: list[int] = tokenizer.encode(_speakable(text)).ids
    return whole


def _speakable(text: str) -> str:
    """The text with lone surrogates replaced, which the tokenizer would refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indexes of texts of similar length, in batches of limited padded size."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted, so this text would be the longest and set the padded width of the batch.
        if batch and (len(batch) == _BATCH_TEXTS or (len(batch) + 1) * lengths[index] > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _forward(numpy: Any, session: Any, encoded: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401 - loaded lazily
    """Unit vectors of one batch: the mean of the token vectors, as sentence-transformers pools this model."""
    width = max(len(ids) for ids in encoded)
    input_ids = numpy.zeros((len(encoded), width), dtype=numpy.int64)
    mask = numpy.zeros((len(encoded), width), dtype=numpy.int64)
    for row, ids in enumerate(encoded):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    inputs = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(input_ids)}
    hidden = session.run(None, inputs)[0]
    weights = mask[:, :, None].astype(numpy.float32)
    pooled = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return pooled / numpy.maximum(numpy.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
