"""The MiniLM embedder against Chroma's default: texts per second on short and on long texts, and the vectors' distance.

Both run the same ONNX file; Chroma pads every text to 256 tokens. Both are given the same texts in turns, after a
warm-up, so that what else the machine does falls on both.

    python -m benchmarks.embedding --texts 256
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

from benchmarks.conversations import turns
from benchmarks.reporting import Grid, Report, Target, arguments, finish, median, show
from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings, find_minilm

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS_OF_LONG = 200
_LEAST_RATIO = 5.0
_MOST_DIFFERENCE = 1e-5
_JUDGED_FROM = 64  # texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One kind of texts."""

    texts: str
    count: int
    mean_words: float
    ours_per_second: float
    chroma_per_second: float
    ratio: float
    """Median over the rounds."""
    largest_difference: float
    """Between the components of two unit vectors."""


def measure(count: int = 128, *, rounds: int = 3) -> Report:
    """Embed `count` short and `count // 2` long texts in `rounds` rounds with both.

    Raises:
        SettingsError: when the model's files are nowhere.
    """
    short = [str(turn.message.text) for turn in islice(turns(seed=5), count)]
    source = turns(seed=6)
    long = [_long(islice(source, 12)) for _ in range(max(1, count // 2))]
    ours, chroma = MiniLMEmbeddings(), _chroma()
    outcomes = [
        _outcome("short: messages", short, ours, chroma, rounds),
        _outcome("long: passages", long, ours, chroma, rounds),
    ]
    return _report(outcomes, rounds)


def _long(said: object) -> str:
    words = " ".join(str(turn.message.text) for turn in said).split()  # type: ignore[attr-defined] # turns
    return " ".join(words[:_WORDS_OF_LONG])


def _chroma() -> ONNXMiniLM_L6_V2:
    """Chroma's function, reading the files that are at hand where they are not in its own cache."""
    folder = find_minilm()
    if folder is not None and folder.name == ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME:
        ONNXMiniLM_L6_V2.DOWNLOAD_PATH = Path(folder).parent
    return ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])


def _outcome(name: str, texts: list[str], ours: MiniLMEmbeddings, chroma: ONNXMiniLM_L6_V2, rounds: int) -> Outcome:
    ours.embed_documents(texts[:2])
    chroma(texts[:2])
    seconds: list[tuple[float, float]] = []
    difference = 0.0
    for number in range(rounds):
        if number % 2:
            theirs, their_vectors = _timed(lambda: chroma(texts))
            mine, my_vectors = _timed(lambda: ours.embed_documents(texts))
        else:
            mine, my_vectors = _timed(lambda: ours.embed_documents(texts))
            theirs, their_vectors = _timed(lambda: chroma(texts))
        seconds.append((mine, theirs))
        difference = max(difference, float(np.abs(np.array(my_vectors) - np.array(their_vectors)).max()))
    return Outcome(
        texts=name,
        count=len(texts),
        mean_words=sum(len(text.split()) for text in texts) / len(texts),
        ours_per_second=len(texts) / median([mine for mine, _ in seconds]),
        chroma_per_second=len(texts) / median([theirs for _, theirs in seconds]),
        ratio=median([theirs / mine for mine, theirs in seconds]),
        largest_difference=difference,
    )


def _timed(call: object) -> tuple[float, object]:
    began = time.perf_counter()
    found = call()  # type: ignore[operator] # either embedder
    return time.perf_counter() - began, found


def _report(outcomes: Sequence[Outcome], rounds: int) -> Report:
    short = outcomes[0]
    difference = max(one.largest_difference for one in outcomes)
    return Report(
        benchmark="embedder",
        about="MiniLM as this package runs it, against Chroma's default; the same file, the same texts, in turns",
        settings={"rounds": rounds},
        grids=(
            Grid(
                title="texts per second (medians)",
                columns=("", "texts", "words", "ours", "Chroma's", "ratio", "largest difference"),
                rows=tuple(
                    (
                        one.texts,
                        one.count,
                        one.mean_words,
                        one.ours_per_second,
                        one.chroma_per_second,
                        one.ratio,
                        f"{one.largest_difference:.1e}",
                    )
                    for one in outcomes
                ),
            ),
        ),
        figures={"texts": [asdict(one) for one in outcomes]},
        targets=(
            Target(
                aim=f"at least {_LEAST_RATIO:.0f} times Chroma's default on short texts",
                measured=f"{short.ratio:.1f}",
                met=short.ratio >= _LEAST_RATIO if short.count >= _JUDGED_FROM else None,
            ),
            Target(aim="the same vectors to 1e-5", measured=f"{difference:.1e}", met=difference <= _MOST_DIFFERENCE),
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments_given)
    report = measure(asked.texts, rounds=asked.rounds)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
