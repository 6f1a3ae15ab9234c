"""What a key costs: the same journey on a plain and on an encrypted file, step beside step, as a ratio.

Each round makes both databases anew and takes every step of the two one after the other, in turns first. Time is the
processor's: the disk is waited for alike, and what else the machine does does not count. No model, no vectors.

    python -m benchmarks.encryption --turns 400 --rounds 7
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.conversations import conversation
from benchmarks.reporting import Grid, Report, arguments, finish, show
from langchain_tiered_memory import Settings, TieredMemory, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

_QUESTIONS = ("Which figure was agreed?", "What was decided about the order?", "When is it due?")
_ASKED = 20


def _key() -> str:
    return "the key of a benchmark, which protects nothing"


class _Side:
    """One of the two databases, and the steps of the journey."""

    def __init__(self, path: Path, said: Sequence[BaseMessage], *, is_encrypted: bool) -> None:
        self._path = path
        self._said = said
        self._key = _key if is_encrypted else None
        self.steps: dict[str, Callable[[], object]] = {
            "make a new database": self._open,
            "add messages, two at a time": self._add,
            "condense them": lambda: self._memory.flush(),  # noqa: PLW0108 - another memory after an opening
            "20 searches": lambda: self._ask(self._memory.session("s").search),
            "20 contexts": lambda: self._ask(lambda query: self._memory.session("s").context(query, max_tokens=4000)),
            "forget a message": self._forget,
            "close, open again": self._again,
            "verify all of it": lambda: self._memory.verify(),  # noqa: PLW0108 - as above
        }

    def _open(self) -> None:
        settings = Settings(tree=TreeSettings(background=False))
        self._memory = TieredMemory.open(self._path, embeddings=None, settings=settings, encryption_key=self._key)

    def _add(self) -> None:
        session = self._memory.session("s")
        for at in range(0, len(self._said), 2):
            session.add_messages(self._said[at : at + 2])

    def _ask(self, ask: Callable[[str], object]) -> None:
        for number in range(_ASKED):
            ask(_QUESTIONS[number % len(_QUESTIONS)])

    def _forget(self) -> None:
        session = self._memory.session("s")
        session.forget(message_ids=[session.messages()[0].id or ""])

    def _again(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        """Close it."""
        self._memory.close()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._path.stat().st_size


def measure(*, turns: int, rounds: int) -> Report:
    """Take the journey `rounds` times on both."""
    said = conversation(2 * turns).messages
    seconds: dict[str, list[tuple[float, float]]] = {}
    sizes: list[tuple[int, int]] = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            plain = _Side(Path(folder) / "plain.db", said, is_encrypted=False)
            sealed = _Side(Path(folder) / "sealed.db", said, is_encrypted=True)
            for step in plain.steps:
                took: dict[_Side, float] = {}
                for side in (plain, sealed) if number % 2 else (sealed, plain):
                    began = time.process_time()
                    side.steps[step]()
                    took[side] = time.process_time() - began
                seconds.setdefault(step, []).append((took[plain], took[sealed]))
            plain.close()
            sealed.close()
            sizes.append((plain.size, sealed.size))
    rows = [(step, *_row(pairs)) for step, pairs in seconds.items()]
    size = statistics.median(sealed / plain for plain, sealed in sizes)
    columns = ("step", "plain, CPU ms", "encrypted, CPU ms", "ratio")
    return Report(
        benchmark="encryption",
        about="an encrypted SQLite file beside a plain one",
        settings={"messages": len(said), "rounds": rounds},
        grids=(Grid(title="by step", columns=columns, rows=tuple(rows)),),
        figures={"seconds": seconds, "size_ratio": round(size, 3)},
        remarks=(
            "medians; the ratio is the median of each round's own",
            f"the encrypted file is {size:.2f} times as large",
            "an opening derives the key from what was given for it, which is slow on purpose",
        ),
    )


def _row(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    plain, sealed = (statistics.median(one) for one in zip(*pairs, strict=True))
    return plain * 1000, sealed * 1000, statistics.median(sealed / plain for plain, sealed in pairs)


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments_given)
    report = measure(turns=asked.turns, rounds=asked.rounds)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
