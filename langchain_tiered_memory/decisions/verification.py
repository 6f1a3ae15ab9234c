"""What must hold between the transcript and everything derived from it, checked value against value."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.drafting import draft_of
from langchain_tiered_memory.decisions.messages import decode
from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.records import Passage, PassageDraft, SummaryState
from langchain_tiered_memory.reports import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.drafts import Incoming
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.records import Entry, Summary


def derived_again(entry: Entry, *, counter: TokenCounter, passage_words: int) -> Incoming | None:
    """What the stored message gives when it is read anew; `None` when it cannot be read."""
    try:
        message = decode(entry.payload)
        incoming, _ = draft_of(
            message,
            counter=counter,
            message_id=entry.id,
            at=entry.at,
            track=entry.track,
            kind=entry.kind,
            task=entry.task,
            passage_words=passage_words,
        )
    except UnknownMessageError:
        return None
    return incoming


def entry_problems(
    entry: Entry, again: Incoming | None, *, passages: Sequence[Passage], summary_ids: frozenset[str], where: str
) -> list[Problem]:
    """What is wrong with one message and its index rows."""
    what = f"{where}/{entry.id}"
    if again is None:
        return [Problem(kind="unreadable_message", what=what, detail="its payload cannot be decoded")]
    found: list[Problem] = []
    draft = again.draft
    if draft.digest != entry.digest:
        # What is derived from such a payload says nothing about the rest.
        return [Problem(kind="message_changed", what=what, detail="its payload is not what its digest says")]
    if draft.text != entry.text:
        found.append(Problem(kind="text_changed", what=what, detail="its text is not what its payload says"))
    if draft.tokens != entry.tokens:
        found.append(
            Problem(kind="wrong_count", what=what, detail=f"{entry.tokens} tokens stored, {draft.tokens} counted")
        )
    if not same_passages(passages, again.passages):
        found.append(Problem(kind="wrong_index_rows", what=what, detail="its passages are not what its text gives"))
    if entry.summary_id is not None and entry.summary_id not in summary_ids:
        found.append(
            Problem(
                kind="missing_summary",
                what=what,
                detail=f"its summary {entry.summary_id} is gone",
                about=entry.summary_id,
            )
        )
    return found


def same_passages(stored: Sequence[Passage], drafts: Sequence[PassageDraft]) -> bool:
    """Whether index rows are what a text gives."""
    left = [(one.part, one.start, one.stop, one.terms) for one in sorted(stored, key=lambda one: one.part)]
    return left == [(one.part, one.start, one.stop, one.terms) for one in drafts]


def source_identity(source_id: str, text: str) -> bytes:
    """Which source, and what it said."""
    return hashlib.sha256(f"{source_id}\0{text}".encode("utf-8", "surrogatepass")).digest()


def sources_digest(sources: Sequence[tuple[str, str]]) -> str:
    """Identity of what a summary was made from: (id, text) of each source, in order."""
    digest = hashlib.sha256()
    for source_id, text in sources:
        digest.update(source_identity(source_id, text))
    return digest.hexdigest()


def summary_problems(
    summary: Summary,
    *,
    sources: Sequence[tuple[str, str]],
    covered: Sequence[str],
    summaries: Mapping[str, Summary],
    says: str,
    kept_digest: str,
    where: str,
) -> list[Problem]:
    """What is wrong with one summary.

    Args:
        summary: It.
        sources: (id, text) of those of its sources that exist.
        covered: Ids of the messages or summaries that say they are under it.
        summaries: Every summary of the session, by id.
        says: Digest of its text and facts.
        kept_digest: The digest kept when it was committed.
        where: The session, for the report.
    """
    what = f"{where}/{summary.id}"
    found: list[Problem] = []
    if sorted(covered) != sorted(summary.sources):
        missing = sorted(set(summary.sources) - set(covered))
        detail = f"what it names and what stands under it differ: {', '.join(missing[:3]) or 'more stands under it'}"
        found.append(Problem(kind="wrong_coverage", what=what, detail=detail))
    if summary.parent_id is not None and summary.parent_id not in summaries:
        found.append(Problem(kind="missing_parent", what=what, detail=f"its parent {summary.parent_id} is gone"))
    if not summary.state.finished:
        return found
    if says != kept_digest:
        found.append(Problem(kind="summary_changed", what=what, detail="its text is not what its digest says"))
    if not summary.stale and len(sources) == len(summary.sources) and sources_digest(sources) != summary.source_digest:
        found.append(Problem(kind="sources_changed", what=what, detail="its sources do not say what they said"))
    parent = summaries.get(summary.parent_id or "")
    under_finished = parent is not None and parent.state.finished
    if under_finished != (summary.state is SummaryState.SUPERSEDED):
        found.append(Problem(kind="wrong_state", what=what, detail=f"{summary.state} does not fit its parent"))
    return found
