"""Files of a run in their tiers, as the verbs of a run give them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from langchain_tiered_memory.display.shown import Listing, Shown

Tier: TypeAlias = Literal["hot", "warm", "cold"]
"""In use now; used lately, or likely to be used next; kept for the session."""

FileState: TypeAlias = Literal["new", "unchanged", "changed", "deleted"]
"""Not kept before; as it was kept; another content than was kept; kept, and gone from the disk."""

MoveReason: TypeAlias = Literal[
    "opened", "least_recently_used", "unused", "pinned", "cleanup", "restored", "deleted", "limits", "rest"
]
"""Why a file changed its tier: it was opened; another took its place; nobody opened it for its tier's time; it was
pinned; the tiers were nearly full; a checkpoint was restored; it is gone from the
disk; the limits were lowered; hot and warm hold fewer files while that costs nobody a wait."""

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".java": "java",
    ".go": "go",
    ".c": "c",
    ".h": "c",
    ".cc": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
    ".hh": "c++",
    ".hpp": "c++",
    ".rs": "rust",
}
"""What a file is written in, by its ending."""

FILE_KINDS = ("binary", "text", *dict.fromkeys(LANGUAGES.values()))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeptFile(Shown, sheet="sessions.file"):
    """What is known of a file besides its content."""

    path: str
    tier: Tier
    kind: str
    """Its language by its ending (`python`), `text`, or `binary`."""
    size: int
    """In bytes."""
    modified_ns: int | None
    """When it was changed last, in nanoseconds since the epoch, to a millisecond: the digits below stand for which file
    it is. -1 where that was too short before it was read to be relied on, `None` where its content was given."""
    changed_at: float
    """When it was first seen with the content that it has."""
    accessed_at: float
    accesses: int
    checksum: str
    """SHA-256 of its content, in hexadecimal."""
    dependencies: tuple[str, ...] = ()
    """What it imports, by the names that stand in it."""
    pinned: bool = False
    deleted: bool = False
    """Whether it was gone when it was looked for last."""


class Files(Listing[KeptFile], sheet="sessions.files"):
    """Files of a run, the last opened first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TierMove:
    """A file that went from one tier to another."""

    path: str
    before: Tier | None
    """`None`: it was not kept."""
    after: Tier | None
    """`None`: it is no longer kept."""
    reason: MoveReason

    @property
    def is_promotion(self) -> bool:
        """Whether it went up, or came in."""
        return self.after is not None and _RANK[self.after] > _RANK[self.before]


_RANK: dict[Tier | None, int] = {None: 0, "cold": 1, "warm": 2, "hot": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file's content, and where it came from."""

    file: KeptFile
    content: bytes
    state: FileState
    from_tier: Tier | None
    """The tier that it was in; `None` where it was not kept."""
    moves: tuple[TierMove, ...] = ()

    @property
    def path(self) -> str:
        """Its path, links followed."""
        return self.file.path

    @property
    def is_binary(self) -> bool:
        """Whether it is no text."""
        return self.file.kind == "binary"

    @property
    def text(self) -> str:
        """Its content as text; what is no UTF-8 stands as replacement characters."""
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TierSizes(Shown, sheet="sessions.tiers"):
    """How much the tiers hold."""

    files: dict[Tier, int]
    bytes: dict[Tier, int]
    """Of contents as they are; one that several files share counts for each."""
    stored_bytes: int
    """Of contents as they are kept, each once, dictionaries included."""
    packed_bytes: int
    """Of the contents that are kept compressed, as they are."""
    packed_stored_bytes: int
    """Of the same as they are kept, dictionaries included."""
    pinned: int
    utilisation: float
    """Hot and warm files, as a share of what the two tiers may hold."""
    shares: dict[Tier, float] = field(default_factory=dict)
    """Files in `hot` and in `warm`, each as a share of what that tier may hold."""

    @property
    def compression(self) -> float | None:
        """How many bytes one byte of a compressed content stands for; `None` where none is compressed."""
        return self.packed_bytes / self.packed_stored_bytes if self.packed_stored_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionReport:
    """What a collection or an optimisation did."""

    reason: str
    moves: tuple[TierMove, ...] = ()
    strategies: tuple[str, ...] = ()
    """Which ran, in their order; `aggressive` where they did not free enough."""
    freed_bytes: int = 0
    archived_checkpoints: int = 0
    utilisation: float = 0.0
    """Afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long something took, in seconds: over the last 2,000 times."""

    count: int
    """How often it was done, however long ago."""
    mean: float
    p50: float
    p95: float
    p99: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSize:
    """How large one model call's context was."""

    at: float
    track: str
    tokens: int
    limit: int
    """What the window leaves for it."""
    zone: str
    needed_tokens: int = 0
    """Of the same request before anything was done to make it fit: what its zone is judged by."""
    sections: dict[str, int] = field(default_factory=dict)
    """Its tokens by section."""

    @property
    def share(self) -> float:
        """Of the limit."""
        return self.tokens / self.limit if self.limit else 0.0


class WindowUse(Listing[ContextSize], sheet="contexts.window_use"):
    """How large contexts were, oldest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAlert:
    """Something that a person may want to know of a run."""

    at: float
    name: str
    """The event's name."""
    reason: str


_LOGGED = ("hot", "warm", "cold", "promotion", "demotion")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunReport(Shown, sheet="sessions.report"):
    """How a run went, or goes: its files, their tiers, its contexts."""

    session_id: str
    started_at: float
    at: float
    sizes: TierSizes
    counts: dict[str, int]
    """Of the session, whichever process did it: `opened_new`, `opened_hot`, `opened_warm`, `opened_cold`, `promotions`,
    `demotions`, `collections`, `optimisations`, `cleanups`, `offered`, `offered_tokens`."""
    timings: dict[str, Timing]
    """Of this run, by what was timed: `hot`, `warm`, `cold`, `new` (an access to a file that was in that tier),
    `promotion` and `demotion` (of one file), `collection`, `optimisation`."""
    alerts: tuple[RunAlert, ...] = ()
    """The last 100, oldest first."""
    contexts: tuple[ContextSize, ...] = ()
    """The last 2,000 of this process, oldest first."""
    not_loaded: tuple[str, ...] = ()
    """Critical files that could not be loaded."""

    def figures(self) -> dict[str, Any]:
        """What a checkpoint keeps of it, as plain JSON: figures, no words of an alert and no path."""
        return {
            "started_at": self.started_at,
            "sizes": asdict(self.sizes),
            "counts": dict(self.counts),
            "timings": {name: asdict(one) for name, one in self.timings.items()},
            "alerts": dict(Counter(one.name for one in self.alerts)),
            "contexts": len(self.contexts),
            "largest_context_share": max((one.share for one in self.contexts), default=None),
            "not_loaded": len(self.not_loaded),
        }

    def line(self) -> str:
        """One line for a log."""
        files = ", ".join(f"{count} {tier}" for tier, count in self.sizes.files.items())
        shares = ", ".join(f"{tier} {share:.0%}" for tier, share in self.sizes.shares.items())
        full = f"{self.sizes.utilisation:.0%} full" + (f" ({shares})" if shares else "")
        packed = f", compressed {self.sizes.compression:.1f} to 1" if self.sizes.compression else ""
        times = "".join(
            f", {name} p99 {self.timings[name].p99 * 1000:.1f} ms" for name in _LOGGED if name in self.timings
        )
        largest = max((one.share for one in self.contexts), default=None)
        window = f", contexts up to {largest:.0%} of the window" if largest is not None else ""
        moved = f"{self.counts.get('promotions', 0)} promotions, {self.counts.get('demotions', 0)} demotions"
        return f"{files}, {full}, {moved}{packed}{times}{window}, {len(self.alerts)} alerts"
