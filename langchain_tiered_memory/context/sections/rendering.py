"""Renders the registered sections of a request, each within its share; one that fails is left out and reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.across.searching import search_across
from langchain_tiered_memory.across.user_facts import facts_of_user
from langchain_tiered_memory.errors import FileGoneError, FileRefusedError
from langchain_tiered_memory.extensions import SectionQuestion, SectionText
from langchain_tiered_memory.recall.search import search
from langchain_tiered_memory.runs.file_list import accessed_files
from langchain_tiered_memory.runs.files.disk import UNSETTLED_NS, Place, is_unchanged
from langchain_tiered_memory.summaries.engine.extension_host import Given
from langchain_tiered_memory.summaries.rendering import section_block
from langchain_tiered_memory.text.truncation import most_fitting
from langchain_tiered_memory.types.contexts import Section
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.pieces import Piece
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.extensions import ContextSection
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import KeptFile, Tier
    from langchain_tiered_memory.types.records import Entry, Fact, Hit, SessionRef
    from langchain_tiered_memory.types.runs import FileAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReads:
    """Reads one session for a section; each call is a read of its own."""

    runtime: Runtime
    ref: SessionRef
    track: str
    off: frozenset[int]
    """Numbers of messages that are not on this branch: they are never given."""
    user: str | None = None
    """Who asks; `None` where nobody says, and for a sub-agent that keeps to its own track."""

    def messages(self, limit: int, *, roles: Sequence[str] | None = None) -> list[Entry]:
        """The newest messages of the track, oldest first.

        Args:
            limit: How many at most.
            roles: Only these, such as `("user",)`.
        """
        found = self.runtime.store.transcript.entries(
            self.ref, track=self.track, roles=roles, newest_first=True, limit=limit + len(self.off)
        )
        return [entry for entry in found if entry.seq not in self.off][:limit][::-1]

    def search(self, query: str, *, k: int = 10, levels: Sequence[int] | None = None) -> list[Hit]:
        """The best hits of the track over messages (level 0) and summaries, as `Session.search` gives them."""
        filters = SearchFilters(tracks=(self.track,))
        found = search(self.runtime, self.ref.session_id, query, k=k, levels=levels, filters=filters)
        return [hit for hit in found if hit.seq not in self.off]

    def elsewhere(self, query: str, *, k: int = 10) -> list[Hit]:
        """The best messages of the user's other sessions; none where it is not said whose session this is."""
        if self.user is None:
            return []
        return search_across(self.runtime, self.user, query, k=k, besides=self.ref.session_id)

    def facts_of_user(self, query: str | None = None, *, k: int = 50) -> list[Fact]:
        """What holds for the user, as their other sessions state it; none where it is not said whose session this is.

        What this session states itself is not given, and takes the place of what others say of the same matter.
        """
        if self.user is None:
            return []
        return facts_of_user(self.runtime, self.user, query, k=k, besides=self.ref.session_id)

    def files(self, limit: int) -> list[FileAccess]:
        """Files that the track touched, the latest first, one access for each."""
        return accessed_files(self.runtime, self.ref, track=self.track, limit=limit, off=self.off)

    def kept_files(self, tier: Tier | None = None, *, limit: int | None = None) -> list[KeptFile]:
        """Files that runs of the session keep, the last opened first."""
        return self.runtime.store.kept_files.files(self.ref, tier=tier, limit=limit)

    def kept_content(self, path: str) -> bytes | None:
        """What is kept of a file; no tier changes.

        Raises:
            DamagedFileError: when it is not what was kept.
        """
        return self.runtime.store.kept_files.content(self.ref, path)

    def is_unchanged(self, file: KeptFile) -> bool:
        """Whether a kept file is on the disk as it is kept.

        Told by size and time where these prove it, else by the content; a name that somebody gave, which is no path on
        this disk, counts as unchanged.
        """
        path = Path(file.path)
        if file.deleted or not path.is_absolute():
            return not file.deleted
        disk, place = self.runtime.store.disk, Place(path.parent, path)  # found within the roots when it was read
        try:
            look = disk.look(place)
            if file.modified_ns not in (None, UNSETTLED_NS) or look[0] != file.size:
                return is_unchanged(file, look)
            return disk.read(place, most_bytes=file.size, now=self.runtime.now()).checksum == file.checksum
        except (FileGoneError, FileRefusedError):
            return False


_SLACK_TOKENS = 2
"""Blocks may count as a little more together than apart."""


def as_standing(section: Section) -> Section:
    """A section whose very text stands before an earlier question, as the last that was shown of it."""
    left = LeftOut(what=section.name, reason="already shown, before an earlier question", tokens=section.tokens)
    return replace(section, text="", tokens=0, left_out=(*section.left_out, left))


def render_sections(inputs: Inputs, pieces: Sequence[Piece], *, room: int) -> tuple[Section, ...]:
    """What the registered sections say beside `pieces`, in the `room` that is left for all of them."""
    runtime, chosen, request = inputs.runtime, inputs.sections, inputs.request
    if not chosen.kept or request.view == "minimal":
        return ()
    runtime.store.database.end_snapshot()  # they are somebody else's code, in a thread of its own
    user = None if request.alone else request.user
    reads = SectionReads(runtime=runtime, ref=inputs.ref, track=request.track, off=inputs.off, user=user)
    found: list[Section] = []
    for section, share in chosen.kept:
        cap = min(round(share * inputs.policy.total), room)
        question = SectionQuestion(
            session_id=inputs.ref.session_id,
            track=request.track,
            view=request.view,
            query=inputs.query,
            at=runtime.now(),
            room_tokens=max(cap - _tokens(runtime, section.name, "") - _SLACK_TOKENS, 0),
            count=runtime.counter.count_text,
            is_shown=lambda text: any(text in str(piece.message.content) for piece in pieces),
            reads=reads,
        )
        rendered = _rendered(runtime, section, question, cap=cap)
        room -= rendered.tokens
        found.append(rendered)
    return tuple(found)


def _rendered(runtime: Runtime, section: ContextSection, question: SectionQuestion, *, cap: int) -> Section:
    name = section.name
    if question.room_tokens < 1:
        return _without(name, cap, "no room is left")
    answer = runtime.sections.caller.ask(
        f"section {name}",
        lambda: section.render(question),
        lambda answer: (answer,) if answer is None or isinstance(answer, str | SectionText) else None,
        owner=section,
        session_id=question.session_id,
    )
    if not isinstance(answer, Given):
        return _without(name, cap, answer.why)
    given = answer.value[0]
    said = ((given.text if isinstance(given, SectionText) else given) or "").strip()
    sources = given.sources if isinstance(given, SectionText) else ()

    def fits(part: str) -> bool:
        return _tokens(runtime, name, part) + _SLACK_TOKENS <= cap

    text, is_cut = said, not fits(said)
    if is_cut:
        lines = said.splitlines()
        text = "\n".join(lines[: most_fitting(len(lines) - 1, lambda count: fits("\n".join(lines[:count])))])
    if not text:
        why = "its first line is longer than its room"
        return _without(name, cap, why) if is_cut else Section(name=name, tokens=0, cap=cap)
    left = (LeftOut(what=name, reason="longer than its share: cut at the end of a line", tokens=0),) if is_cut else ()
    tokens, block = _tokens(runtime, name, text), section_block(name, text)
    return Section(name=name, cap=cap, text=block, tokens=tokens, left_out=left, sources=sources)


def _tokens(runtime: Runtime, name: str, text: str) -> int:
    return runtime.counter.count_text(section_block(name, text)) + 1


def _without(name: str, cap: int, why: str) -> Section:
    return Section(name=name, tokens=0, cap=max(cap, 0), left_out=(LeftOut(what=name, reason=why, tokens=0),))
