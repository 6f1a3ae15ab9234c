"""A made-up run of a coding agent, from a seed: files that are read, edited and come back to, amid other tools."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks import vocabulary as words
from benchmarks.agent_transcripts import Probe, Transcript, plain, searchable
from langchain_tiered_memory.models.message_counting import EstimatingCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEGINS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
_SECONDS_BETWEEN = 20.0
_FILES = 8
_LINES = 24
_OUTPUT_LINES = 30
_PROBED_FROM = 5
"""Messages after which coming back to a file tells something."""


def made_up_run(*, turns: int = 40, seed: int = 0) -> Transcript:
    """A run of `turns` calls, with a probe for each edit and each return to a file."""
    return _Agent(random.Random(seed)).works(turns)


class _Agent:
    """Works on a handful of files."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._counter = EstimatingCounter()
        self._messages: list[BaseMessage] = []
        self._probes: list[Probe] = []
        self._touched: list[tuple[int, str]] = []
        self._files = {self._path(): self._lines() for _ in range(_FILES)}
        self._read: set[str] = set()

    def works(self, turns: int) -> Transcript:
        """The whole run."""
        self._say(HumanMessage(f"Please replace every {self._choose(words.MATERIALS)} by a better one."))
        for turn in range(turns):
            path = self._choose(sorted(self._files))
            if turn % 10 == 9:  # noqa: PLR2004 - now and then the user has a word
                self._say(AIMessage(f"The {self._choose(words.THINGS)} is done."))
                self._say(HumanMessage(f"Good. Now the {self._choose(words.THINGS)}, please."))
            if turn % 3 == 2:  # noqa: PLR2004 - a third of the calls are no file's
                self._call("bash", {"command": "make test"}, "\n".join(self._lines(_OUTPUT_LINES)))
            elif path in self._read and self._chance.random() < 0.5:  # noqa: PLR2004 - an even chance
                self._edit(path)
            else:
                self._touch(path)
                self._call("read", {"path": path}, _numbered(self._files[path]))
                self._read.add(path)
        return Transcript(
            name=f"made-up-{turns}",
            messages=tuple(self._messages),
            times=tuple(_BEGINS_AT + _SECONDS_BETWEEN * place for place in range(len(self._messages))),
            probes=tuple(self._probes),
            touched=tuple(self._touched),
        )

    def _edit(self, path: str) -> None:
        lines = self._files[path]
        at = self._chance.randrange(len(lines) - 2)
        old, new = "\n".join(lines[at : at + 2]), "\n".join(self._lines(2))
        self._probe("edit_anchor", plain(old))
        self._touch(path)
        self._files[path] = [*lines[:at], *new.split("\n"), *lines[at + 2 :]]
        self._call("edit", {"path": path, "old_text": old, "new_text": new}, f"edited {path}")

    def _touch(self, path: str) -> None:
        last = max((place for place, touched in self._touched if touched == path), default=None)
        if last is not None and last + _PROBED_FROM <= len(self._messages):
            self._probe("file_return", path)
        self._touched.append((len(self._messages), path))

    def _probe(self, kind: str, needle: str) -> None:
        sources = [place for place, message in enumerate(self._messages) if needle in searchable(message)]
        if sources:
            since = self._messages[sources[-1] + 1 :]
            gap = sum(self._counter.count_message(message) for message in since)
            at = len(self._messages)
            self._probes.append(Probe(at=at, kind=kind, needle=needle, sources=frozenset(sources), gap=gap))

    def _call(self, tool: str, arguments: dict[str, Any], result: str) -> None:
        key = f"call_{len(self._messages)}"
        self._say(AIMessage("", tool_calls=[{"id": key, "name": tool, "args": arguments}]))
        self._say(ToolMessage(result, tool_call_id=key, name=tool))

    def _say(self, message: BaseMessage) -> None:
        self._messages.append(message.model_copy(update={"id": f"m{len(self._messages)}"}))

    def _path(self) -> str:
        folders = "/".join(self._chance.sample(words.FOLDERS, 2))
        return f"/{folders}/{self._choose(words.STEMS)}_{self._chance.randint(10, 999)}.py"

    def _lines(self, number: int = _LINES) -> list[str]:
        return [
            f"    {self._choose(words.STEMS)}_{self._chance.randint(1, 9999)} = {self._choose(words.STEMS)}("
            f'"{self._choose(words.MATERIALS)} {self._choose(words.THINGS)}", {self._chance.randint(10, 99_999)})'
            for _ in range(number)
        ]

    def _choose(self, among: Sequence[str]) -> str:
        return self._chance.choice(list(among))


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=1))
