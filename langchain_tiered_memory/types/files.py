"""Files of a run in their tiers, as the verbs of a run return them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from langchain_tiered_memory.display.shown import Listing, Shown

Tier: TypeAlias = Literal["hot", "warm", "cold"]
"""`hot`: in use. `warm`: used lately, or likely to be used next. `cold`: kept for the session."""

FileState: TypeAlias = Literal["new", "unchanged", "changed", "deleted"]
"""How a file on disk compares with what the run kept: `new` was not kept before, `deleted` is gone from the disk."""

MoveReason: TypeAlias = Literal[
    "opened", "least_recently_used", "unused", "pinned", "cleanup", "restored", "deleted", "limits", "rest"
]
"""Why a file changed its tier. `unused`: nobody opened it for the time of its tier. `cleanup`: the tiers were nearly
full. `limits`: the limits were lowered. `rest`: hot and warm hold fewer files while that makes nobody wait."""

_ENDINGS = {
    "python": (".py", ".pyi"),
    "javascript": (".js", ".jsx", ".mjs", ".cjs"),
    "typescript": (".ts", ".tsx"),
    "java": (".java",),
    "go": (".go",),
    "c": (".c", ".h"),
    "c++": (".cc", ".cpp", ".cxx", ".hh", ".hpp"),
    "rust": (".rs",),
}
LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings}
"""The language of a file, by the ending of its name."""

FILE_KINDS = ("binary", "text", *_ENDINGS)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeptFile(Shown, sheet="sessions.file"):
    """What is known about a file besides its content."""

    path: str
    tier: Tier
    kind: str
    """Its language, such as `python`, or `text` or `binary`."""
    size: int
    """In bytes."""
    modified_ns: int | None
    """When it was last modified, in nanoseconds since the epoch, to a millisecond; the digits below identify the file.
    -1 if it was modified so shortly before the read that the time is not reliable. `None` if the caller gave its
    content."""
    changed_at: float
    """When it was first seen with its present content, in seconds since the epoch."""
    accessed_at: float
    """When it was last opened, in seconds since the epoch."""
    accesses: int
    """How often it was opened."""
    checksum: str
    """SHA-256 of its content, in hexadecimal."""
    dependencies: tuple[str, ...] = ()
    """What it imports, by the names in its text."""
    pinned: bool = False
    deleted: bool = False
    """Whether it was missing when it was last looked for."""


class Files(Listing[KeptFile], sheet="sessions.files"):
    """Files of a run, the last opened first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TierMove:
    """A file that moved from one tier to another."""

    path: str
    before: Tier | None
    """`None` if it was not kept."""
    after: Tier | None
    """`None` if it is no longer kept."""
    reason: MoveReason

    @property
    def is_promotion(self) -> bool:
        """Whether it moved up, or is newly kept."""
        return self.after is not None and _RANK[self.after] > _RANK[self.before]


_RANK: dict[Tier | None, int] = {None: 0, "cold": 1, "warm": 2, "hot": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """The content of a file, and where it came from."""

    file: KeptFile
    content: bytes
    state: FileState
    from_tier: Tier | None
    """The tier that it was in before. `None` if it was not kept."""
    moves: tuple[TierMove, ...] = ()
    """Files that changed their tier because of this access."""

    @property
    def path(self) -> str:
        """Its path, with links resolved."""
        return self.file.path

    @property
    def is_binary(self) -> bool:
        """Whether its content is not text."""
        return self.file.kind == "binary"

    @property
    def text(self) -> str:
        """Its content as text. Bytes that are not UTF-8 become replacement characters."""
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TierSizes(Shown, sheet="sessions.tiers"):
    """How much the tiers hold."""

    files: dict[Tier, int]
    """Number of files, by tier."""
    bytes: dict[Tier, int]
    """Uncompressed bytes, by tier. A content that several files share counts once for each."""
    stored_bytes: int
    """Bytes in the database: each content once, with dictionaries."""
    packed_bytes: int
    """Uncompressed bytes of the compressed contents."""
    packed_stored_bytes: int
    """Bytes in the database of the compressed contents, with dictionaries."""
    pinned: int
    """Number of pinned files."""
    utilisation: float
    """Files in hot and warm, as a share of what the two tiers may hold."""
    shares: dict[Tier, float] = field(default_factory=dict)
    """Files in `hot` and in `warm`, each as a share of what that tier may hold."""

    @property
    def compression(self) -> float | None:
        """The compression ratio: uncompressed bytes per stored byte. `None` if nothing is compressed."""
        return self.packed_bytes / self.packed_stored_bytes if self.packed_stored_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionReport:
    """What a collection or an optimisation did."""

    reason: str
    """What started it."""
    moves: tuple[TierMove, ...] = ()
    strategies: tuple[str, ...] = ()
    """The strategies that ran, in order. `aggressive` is among them if the others did not free enough."""
    freed_bytes: int = 0
    archived_checkpoints: int = 0
    utilisation: float = 0.0
    """`TierSizes.utilisation` afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long something took, in seconds, over the last 2,000 times."""

    count: int
    """How often it was done in all."""
    mean: float
    p50: float
    p95: float
    p99: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSize:
    """How large the context of one model call was."""

    at: float
    """Time of the call, in seconds since the epoch."""
    track: str
    tokens: int
    limit: int
    """The window minus the tokens reserved for the answer."""
    zone: str
    needed_tokens: int = 0
    """Tokens of the request before it was made to fit. They decide the zone."""
    sections: dict[str, int] = field(default_factory=dict)
    """Tokens by section."""

    @property
    def share(self) -> float:
        """`tokens` as a share of `limit`."""
        return self.tokens / self.limit if self.limit else 0.0


class WindowUse(Listing[ContextSize], sheet="contexts.window_use"):
    """The sizes of a session's contexts, oldest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAlert:
    """Something about a run that a person may want to know about."""

    at: float
    """When it happened, in seconds since the epoch."""
    name: str
    """Name of the event."""
    reason: str


_LOGGED = ("hot", "warm", "cold", "promotion", "demotion")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunReport(Shown, sheet="sessions.report"):
    """How a run went, or is going: its files, their tiers, its contexts."""

    session_id: str
    started_at: float
    """When the run began, in seconds since the epoch."""
    at: float
    """When the report was made, in seconds since the epoch."""
    sizes: TierSizes
    counts: dict[str, int]
    """Counts of the session over all processes: `opened_new`, `opened_hot`, `opened_warm`, `opened_cold`, `promotions`,
    `demotions`, `collections`, `optimisations`, `cleanups`, `offered`, `offered_tokens`."""
    timings: dict[str, Timing]
    """Timings of this run: `hot`, `warm`, `cold` and `new` (opening a file from that tier), `promotion` and `demotion`
    (of one file), `collection`, `optimisation`."""
    alerts: tuple[RunAlert, ...] = ()
    """The last 100, oldest first."""
    contexts: tuple[ContextSize, ...] = ()
    """The last 2,000 of this process, oldest first."""
    not_loaded: tuple[str, ...] = ()
    """Paths of critical files that could not be loaded."""

    def figures(self) -> dict[str, Any]:
        """The figures that a checkpoint keeps, as plain JSON, without paths and without the words of alerts."""
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
        """The report as one line for a log."""
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
