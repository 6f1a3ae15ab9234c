"""Checks of derived data against the transcript, value by value."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode, digest_of_payload
from langchain_tiered_memory.messages.ingest import draft_of
from langchain_tiered_memory.types.records import SummaryState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.drafts import Incoming
    from langchain_tiered_memory.types.records import Entry, Summary


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
            as_given=False,
        )
        # Not of the message that was made again: a process that has not loaded the class of an artifact cannot.
        digest = digest_of_payload(entry.payload)
    except UnknownMessageError:
        return None
    return dataclasses.replace(incoming, draft=dataclasses.replace(incoming.draft, digest=digest))


def entry_faults(entry: Entry, again: Incoming | None, *, is_indexed: bool, is_ours: bool) -> list[tuple[str, str]]:
    """What is wrong with one message and its index rows: kind and detail of each problem.

    `again` is what it gives when it is read anew; `is_indexed`: its index rows are those of that; `is_ours`: its tokens
    were counted by the counter that counted that.
    """
    if again is None:
        return [("unreadable_message", "its payload cannot be decoded")]
    draft = again.draft
    if draft.digest != entry.digest:
        # What is derived from such a payload says nothing about the rest.
        return [("message_changed", "its payload is not what its digest says")]
    found: list[tuple[str, str]] = []
    if draft.text != entry.text:
        found.append(("text_changed", "its text is not what its payload says"))
    # An edit changes what is said, and leaves a message in its place: it answers the call that it answered.
    read = ("role", "name", "calls") if entry.revision else ("role", "name", "calls", "answers")
    wrong = [name for name in read if getattr(draft, name) != getattr(entry, name)]
    if wrong:
        found.append(("wrong_reading", f"its {', '.join(wrong)} is not what its payload says"))
    if is_ours and draft.tokens != entry.tokens:
        found.append(("wrong_count", f"{entry.tokens} tokens stored, {draft.tokens} counted"))
    if not is_indexed:
        found.append(("wrong_index_rows", "its passages are not what its text gives, or not in its place"))
    return found


def source_identity(source_id: str, text: str) -> bytes:
    """Which source, and what it said."""
    return hashlib.sha256(f"{source_id}\0{text}".encode("utf-8", "surrogatepass")).digest()


def sources_digest(sources: Sequence[tuple[str, str]]) -> str:
    """Identity of what a summary was made from: (id, text) of each source, in order."""
    return _digest_of(source_identity(source_id, text) for source_id, text in sources)


def _digest_of(identities: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for identity in identities:
        digest.update(identity)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Coverage:
    """What stands under a summary, compared with what it names; small, however much it covers."""

    differs: str | None
    """In what, if in anything."""
    digest: str | None
    """Identity of its sources as they are now; `None` where one is missing."""


def coverage_of(summary: Summary, under: Sequence[tuple[str, bytes | None]]) -> Coverage:
    """Compare what a summary names with what says that it stands under it.

    `under` has no identity for one that cannot be its source.
    """
    covered = [one for one, _ in under]
    differs = None
    if sorted(covered) != sorted(summary.sources):
        missing = sorted(set(summary.sources) - set(covered))
        differs = f"what it names and what stands under it differ: {', '.join(missing[:3]) or 'more stands under it'}"
    identities = {one: identity for one, identity in under if identity is not None}
    if any(one not in identities for one in summary.sources):
        return Coverage(differs, None)
    return Coverage(differs, _digest_of(identities[one] for one in summary.sources))


def summary_faults(
    summary: Summary, *, coverage: Coverage, summaries: Mapping[str, Summary], is_changed: bool
) -> list[tuple[str, str]]:
    """What is wrong with one summary: kind and detail of each problem.

    `is_changed`: its text and facts are not what was committed.
    """
    found: list[tuple[str, str]] = []
    if coverage.differs is not None:
        found.append(("wrong_coverage", coverage.differs))
    if summary.parent_id is not None and summary.parent_id not in summaries:
        found.append(("missing_parent", f"its parent {summary.parent_id} is gone"))
    if not summary.state.finished:
        return found
    if is_changed:
        found.append(("summary_changed", "its text is not what its digest says"))
    if not summary.stale and coverage.digest not in (None, summary.source_digest):
        found.append(("sources_changed", "its sources do not say what they said"))
    parent = summaries.get(summary.parent_id or "")
    under_finished = parent is not None and parent.state.finished
    if under_finished != (summary.state is SummaryState.SUPERSEDED):
        found.append(("wrong_state", f"{summary.state} does not fit its parent"))
    return found
