"""Shortens the output of tools, and what calls of tools carry, in what a condensing model reads.

Most of an agent's history is files that were read, listings and logs, of which a summary says what was looked at and
what came of it. A model is shown the head and the tail of each, and asked for less; what people and the assistant say
stays whole. The transcript, facts, search and the audit, which mends what a summary dropped, have everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start
from langchain_tiered_memory.text.truncation import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.settings import TreeSettings
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

LEFT_OUT = "[... the middle is left out ...]"
"""Between head and tail. Without a figure, which a model might repeat as if somebody had said it."""


class Shortening:
    """What a condensing model is shown of a job.

    Args:
        tool_tokens: Of a tool's output, and of the calls of one message, at most.
        tree: The sizes of summaries, which go by what is shown.
        count_text: Tokens of a text.
    """

    def __init__(self, *, tool_tokens: int, tree: TreeSettings, count_text: Callable[[str], int]) -> None:
        self._tool_tokens = tool_tokens
        self._tree = tree
        self._count_text = count_text

    def of(self, job: CondenseJob) -> CondenseJob:
        """The job as a model is shown it: the same one where nothing in it is long."""
        if job.level > 1:
            return job
        sources = tuple(self._source(source) for source in job.sources)
        if sources == job.sources:
            return job
        size = target_and_cap(self._tree.level(1), sum(source.tokens for source in sources))
        return replace(
            job,
            sources=sources,
            target_tokens=min(job.target_tokens, size.target_tokens),
            max_tokens=min(job.max_tokens, size.max_tokens),
        )

    def _source(self, source: SourceText) -> SourceText:
        if source.tokens <= self._tool_tokens or source.role not in ("tool", "assistant"):
            return source
        start = 0 if source.role == "tool" else call_start(source.text)
        if start is None:
            return source
        said, rest = source.text[:start], source.text[start:]
        shown = head_and_tail(rest, max_tokens=self._tool_tokens, count=self._count_text, line=LEFT_OUT)
        if shown == rest:
            return source
        text = said + shown
        return replace(source, text=text, tokens=self._count_text(text))
