"""The cost curve in tables: what is in view against what is billed, and who stands on its outer edge."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.billing import RATES, Bill, Rates
from benchmarks.curve_play import MEASURES, Measure, Played
from benchmarks.reporting import Grid, Report, Target, median, p95

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.curve_entries import Entry
    from benchmarks.curve_runs import Kind

_FEW = 0.05
"""Of its requests, that a peer may send over the window, or not at all, and still count as one that keeps within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One entry over all runs of a kind, within one window."""

    entry: str
    ours: bool
    settings: str | None
    whole: bool
    kind: Kind
    window: int
    bill: Bill
    shown: dict[Measure, float]
    """Means over everything that was looked for (0 to 1)."""
    requests: int
    over: int
    invalid: int
    refused: int
    largest: int
    median_ms: float
    p95_ms: float

    @property
    def fits(self) -> bool:
        """Whether nearly all of its requests are made, and within the window."""
        return self.over + self.refused <= _FEW * self.requests

    def covers(self, other: Point, rates: Rates) -> bool:
        """Whether it bills no more than the other, and keeps at least as much in view of everything looked for."""
        cheaper = self.bill.billed(rates) <= other.bill.billed(rates)
        return cheaper and all(self.shown[measure] >= share for measure, share in other.shown.items())


def report_of(played: Sequence[Played], entered: Sequence[Entry], *, settings: Mapping[str, Any]) -> Report:
    """The report of all runs."""
    points = points_of(played, entered)
    places = list(dict.fromkeys((point.kind, point.window) for point in points))
    grids: list[Grid] = []
    for place in places:
        here = _at(points, place)
        grids += [_curve_grid(here), _cost_grid(here)]
    return Report(
        benchmark="cost curve",
        about="what is in view against the billed tokens of whole runs",
        settings=dict(settings),
        grids=tuple(grids),
        figures={
            "curve": [_plain(point, _at(points, (point.kind, point.window))) for point in points],
            "runs": [_run(one) for one in played],
        },
        targets=tuple(target for place in places for target in _targets(_at(points, place))),
        remarks=(
            "billed: uncached input at 1, a byte-identical prefix and output at the rates named, condensing input at 1",
            "calls, read, wrote: of a condensing model; alike: of what it reads, what a call before began with",
            "edge: within its window, and nobody else there bills no more (cached 0.1, output 1) and shows no less",
        ),
    )


def points_of(played: Sequence[Played], entered: Sequence[Entry]) -> list[Point]:
    """Runs of one kind and window taken together, the cheapest first."""
    groups: dict[tuple[Kind, int, str], list[Played]] = {}
    for one in played:
        groups.setdefault((one.kind, one.window, one.entry), []).append(one)
    by_name = {entry.name: entry for entry in entered}
    points = [_point(group, by_name[name]) for (_, _, name), group in groups.items()]
    return sorted(points, key=lambda point: (point.kind, point.window, point.bill.billed(RATES[0])))


def _point(group: Sequence[Played], entry: Entry) -> Point:
    bill = sum((one.bill for one in group), start=Bill())
    shown: dict[Measure, float] = {}
    for measure in MEASURES[group[0].kind]:
        found = [share for one in group for share in one.shown.get(measure, ())]
        if found:
            shown[measure] = mean(found)
    took = [spent for one in group for spent in one.milliseconds]
    return Point(
        entry=entry.name,
        ours=entry.ours,
        settings=entry.settings,
        whole=entry.whole,
        kind=group[0].kind,
        window=group[0].window,
        bill=bill,
        shown=shown,
        requests=sum(one.requests for one in group),
        over=sum(one.over for one in group),
        invalid=sum(one.invalid for one in group),
        refused=sum(one.refused for one in group),
        largest=max(one.largest for one in group),
        median_ms=median(took),
        p95_ms=p95(took),
    )


def on_edge(point: Point, others: Sequence[Point], rates: Rates = RATES[0]) -> bool:
    """Whether it keeps within its window, and nobody who does covers it; of two that are alike both stand there."""
    covered = (other.fits and other.covers(point, rates) and not point.covers(other, rates) for other in others)
    return point.fits and not any(covered)


def _at(points: Sequence[Point], place: tuple[Kind, int]) -> list[Point]:
    return [point for point in points if (point.kind, point.window) == place]


def _name(place: Point) -> str:
    return f"{place.kind}s, window of {place.window:,}"


def _curve_grid(points: Sequence[Point]) -> Grid:
    measures = points[0].shown
    return Grid(
        title=f"{_name(points[0])}: in view (%), and billed (thousands of tokens)",
        columns=("", *measures, *(rates.label for rates in RATES), "edge"),
        rows=tuple(
            (
                point.entry,
                *(100 * point.shown[measure] for measure in measures),
                *(point.bill.billed(rates) / 1000 for rates in RATES),
                "yes" if on_edge(point, points) else "",
            )
            for point in points
        ),
    )


def _cost_grid(points: Sequence[Point]) -> Grid:
    columns = ("sent, k", "cached, %", "calls", "read, k", "alike, k", "wrote, k", "largest")
    faults = ("over", "invalid", "refused", "ms", "95 %")
    return Grid(
        title=f"{_name(points[0])}: what that is made of, {points[0].requests:,} requests",
        columns=("", *columns, *faults),
        rows=tuple(
            (
                point.entry,
                point.bill.sent / 1000,
                100 * point.bill.cached / max(point.bill.sent, 1),
                point.bill.condensing_calls,
                point.bill.condensing_read / 1000,
                point.bill.condensing_cached / 1000,
                point.bill.condensing_written / 1000,
                point.largest,
                point.over,
                point.invalid,
                point.refused,
                point.median_ms,
                point.p95_ms,
            )
            for point in points
        ),
    )


def _targets(points: Sequence[Point]) -> list[Target]:
    mine = [point for point in points if point.ours]
    if not mine:
        return []
    targets: list[Target] = []
    for peer in points:
        if peer.ours or peer.whole:
            continue
        covering = [point.entry for point in mine if point.covers(peer, RATES[0])]
        dearer = [point.entry for point in mine if point.covers(peer, RATES[1])]
        at_five = "at output 5 too" if dearer else "not at output 5"
        beyond = "" if peer.fits else f"; its requests are over the window, or not made: {peer.over + peer.refused}"
        targets.append(
            Target(
                aim=f"{_name(peer)}: no more billed and no less in view than {peer.entry}",
                measured=(f"{covering[0]}, {at_five}" if covering else "by none") + beyond,
                met=bool(covering) if peer.fits else None,
            )
        )
    fitting = [peer for peer in points if peer.fits and not (peer.ours or peer.whole)]
    if fitting:
        rival = min(fitting, key=lambda peer: peer.bill.billed(RATES[0]))
        cheapest = min(mine, key=lambda point: point.bill.billed(RATES[0]))
        ours, theirs = (point.bill.billed(RATES[0]) / 1000 for point in (cheapest, rival))
        targets.append(
            Target(
                aim=f"{_name(rival)}: below {rival.entry}, the cheapest peer that keeps within its window",
                measured=f"{cheapest.entry} {ours:,.0f}k, {rival.entry} {theirs:,.0f}k",
                met=ours < theirs,
            )
        )
    return targets


def _plain(point: Point, here: Sequence[Point]) -> dict[str, Any]:
    billed = {rates.label: point.bill.billed(rates) for rates in RATES}
    edge = {rates.label: on_edge(point, here, rates) for rates in RATES}
    return asdict(point) | {"billed": billed, "edge": edge, "fits": point.fits}


def _run(one: Played) -> dict[str, Any]:
    found = asdict(one)
    took = found.pop("milliseconds")
    billed = {rates.label: one.bill.billed(rates) for rates in RATES}
    return found | {
        "billed": billed,
        "median_ms": median(took),
        "p95_ms": p95(took),
        "processor_seconds": sum(took) / 1000,
    }
