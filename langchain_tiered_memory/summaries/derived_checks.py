"""Checks of derived data against the transcript, value by value."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from langchain_tiered_memory.types.records import Entry, SummaryState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_tiered_memory.types.drafts import Incoming
    from langchain_tiered_memory.types.records import Summary


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
        return [("message_changed", "its payload does not match its digest")]
    found: list[tuple[str, str]] = []
    if draft.text != entry.text:
        found.append(("text_changed", "its text does not match its payload"))
    # An edit changes what is said, and leaves a message in its place: it answers the call that it answered.
    read = ("role", "name", "calls") if entry.revision else ("role", "name", "calls", "answers")
    wrong = [name for name in read if getattr(draft, name) != getattr(entry, name)]
    if wrong:
        found.append(("wrong_reading", f"its {', '.join(wrong)} does not match its payload"))
    if is_ours and draft.tokens != entry.tokens:
        found.append(("wrong_count", f"{entry.tokens} tokens stored, {draft.tokens} counted"))
    if not is_indexed:
        found.append(("wrong_index_rows", "its passages do not match its text or its place"))
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


class Source(NamedTuple):
    """What a message or a summary gives the summary that stands for it; small, however long its text is."""

    id: str
    identity: bytes
    level: int
    track: str | None
    first_seq: int
    last_seq: int
    first_at: float
    last_at: float
    entry_count: int
    from_tools: bool


def source_of(one: Entry | Summary) -> Source:
    """A source as it is now."""
    identity = source_identity(one.id, one.text)
    if isinstance(one, Entry):
        return Source(one.id, identity, 0, one.track, one.seq, one.seq, one.at, one.at, 1, one.role == "tool")
    seqs, times = (one.first_seq, one.last_seq), (one.first_at, one.last_at)
    return Source(one.id, identity, one.level, None, *seqs, *times, one.entry_count, one.from_tools)


def coverage_faults(summary: Summary, under: Sequence[Source]) -> list[tuple[str, str]]:
    """Where a summary is not what follows from what stands under it: kind and detail of each problem."""
    sources = {one.id: one for one in under}
    if sorted(one.id for one in under) != sorted(summary.sources):
        missing = ", ".join(sorted(set(summary.sources) - sources.keys())[:3]) or "it has further sources"
        return [("wrong_coverage", f"the sources that it names and its real ones differ: {missing}")]
    right = {
        "level": {one.level + 1 for one in under},
        "track": {one.track for one in under},
        "first_seq": {min((one.first_seq for one in under), default=0)},
        "last_seq": {max((one.last_seq for one in under), default=0)},
        "first_at": {min((one.first_at for one in under), default=0.0)},
        "last_at": {max((one.last_at for one in under), default=0.0)},
        "entry_count": {sum(one.entry_count for one in under)},
    }
    if summary.state.finished and not summary.stale:  # it says so of its sources as they were when it was written
        right["from_tools"] = {any(one.from_tools for one in under)}
        digest = _digest_of(sources[one].identity for one in summary.sources)
        right["source_digest"] = {digest}
    wrong = [name for name, values in right.items() if values != {getattr(summary, name)}]
    found = [("sources_changed", "its sources have changed")] if "source_digest" in wrong else []
    if wrong := [name for name in wrong if name != "source_digest"]:
        found.append(("wrong_summary", f"its {', '.join(wrong)} does not match its sources"))
    return found


def summary_faults(
    summary: Summary, *, summaries: Mapping[str, Summary], is_changed: bool, has_moment: bool
) -> list[tuple[str, str]]:
    """What is wrong with one summary itself and its place: kind and detail of each problem.

    `is_changed`: its text and facts are not what was committed; `has_moment`: it says when it is to be looked at again.
    """
    found: list[tuple[str, str]] = []
    if summary.parent_id is not None and summary.parent_id not in summaries:
        found.append(("missing_parent", f"its parent {summary.parent_id} is gone"))
    if not summary.state.finished:
        return found if has_moment else [*found, ("wrong_state", f"{summary.state}, and nothing says until when")]
    if is_changed:
        found.append(("summary_changed", "its text does not match its digest"))
    parent = summaries.get(summary.parent_id or "")
    under_finished = parent is not None and parent.state.finished
    if under_finished != (summary.state is SummaryState.SUPERSEDED):
        found.append(("wrong_state", f"{summary.state} does not fit its parent"))
    return found
