"""The verb of a session that goes back from a summary to what was said, within a budget."""

from __future__ import annotations

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.recall.detail import detail_of
from langchain_tiered_memory.sessions.core import SessionCore
from langchain_tiered_memory.sessions.scoped_verbs import expand_within
from langchain_tiered_memory.types.arguments import Count  # noqa: TC001 - read at the border
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.records import Entry


@checked_verbs
class DetailVerbs(SessionCore):
    """What a summary stands for, word for word."""

    def reread(self, summary_id: str, *, query: str = "", max_tokens: Count = 2000) -> Detail:
        """The messages that a summary stands for, quoted within `max_tokens`, whatever its level.

        Args:
            summary_id: A summary's id or a message's, or how it begins, as of `expand`.
            query: What is asked: the messages that answer it come first. Empty: from the beginning on.
            max_tokens: Of the quotes and their frame together.

        Raises:
            NotFoundError: when the session has no such summary or message, or the handle's scope does not show it.
            InvalidInputError: when several ids begin so, or an argument cannot be used.
        """
        runtime = self.core.checked
        found = expand_within(self.core, summary_id, depth=None)
        ref = runtime.store.transcript.find(self.session_id)
        entries = [one for one in found if isinstance(one, Entry)]
        return detail_of(runtime, ref, entries, query=query, max_tokens=max_tokens) if ref is not None else Detail()

    areread = off_loop_twin(reread)
