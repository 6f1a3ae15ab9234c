"""Collections and optimisations: what nobody opened goes down, what is gone is dropped."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.errors import FileGoneError, FileRefusedError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.opening import change_tiers, tell_moves
from langchain_tiered_memory.types.files import CollectionReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import TierMove
    from langchain_tiered_memory.types.records import SessionRef


def archive_checkpoints(runtime: Runtime, ref: SessionRef) -> tuple[int, int]:
    """Keep old checkpoints more densely; returns how many, and the bytes that it saved."""
    before = runtime.now() - runtime.settings.tiers.archive_seconds
    return runtime.store.checkpoints.archive(ref, before=before)


def collect(
    runtime: Runtime, ref: SessionRef, *, reason: str = "asked for", roots: Sequence[str] = ()
) -> CollectionReport:
    """Send down what nobody opened for its tier's time, and drop cold files that are gone from the disk."""

    def collected() -> CollectionReport:
        _look_for_deleted(runtime, ref, roots)
        moves = _collected(runtime, ref, counts={"collections": 1}, times={"collected_at": runtime.now()})
        gone = _cleared(runtime, ref)
        return CollectionReport(reason=reason, moves=(*moves, *gone), utilisation=_utilisation(runtime, ref))

    return _told(runtime, ref, "collect_files", EventName.FILES_COLLECTED, collected)


def optimise(runtime: Runtime, ref: SessionRef, *, reason: str = "asked for") -> CollectionReport:
    """Make the tiers less full, one strategy after the other until that is enough.

    Above `tiers.cleanup_share` after all of them, the aggressive cleanup comes.
    """
    optimised = partial(_optimised, runtime, ref, reason=reason)
    return _told(runtime, ref, "optimise_files", EventName.FILES_OPTIMISED, optimised)


def _to_rest(runtime: Runtime, ref: SessionRef) -> tuple[TierMove, ...]:
    """Let go of files that nobody is likely to come back to, where hot and warm hold more than they need."""
    rules, kept = runtime.settings.tiers, runtime.store.kept_files
    files = round(_utilisation(runtime, ref) * (rules.hot.files + rules.warm.files))
    rest = kept.returns.rest(ref.key, now=runtime.now(), files=files, rules=rules)
    if files <= rest.files:
        return ()
    return change_tiers(runtime, ref, lambda tiers: policy.to_rest(tiers, rest, rules))


def _optimised(runtime: Runtime, ref: SessionRef, *, reason: str) -> CollectionReport:
    rules = runtime.settings.tiers
    moves: list[TierMove] = []
    ran: list[str] = []
    archived = freed = 0
    for name in rules.strategies:
        if _utilisation(runtime, ref) < rules.optimise_share:
            break
        ran.append(name)
        match name:
            case "demote_unused":
                moves += _collected(runtime, ref)
            case "archive_checkpoints":
                archived, freed = archive_checkpoints(runtime, ref)
            case "clear_obsolete":
                moves += _cleared(runtime, ref)
    if _utilisation(runtime, ref) > rules.cleanup_share:
        moves += change_tiers(runtime, ref, lambda tiers: policy.clean_up(tiers, rules), counts={"cleanups": 1})
        ran.append("aggressive")
    times, counts = {"optimised_at": runtime.now()}, {"optimisations": 1}
    runtime.store.kept_files.change(ref, rules=rules, times=times, counts=counts)
    return CollectionReport(
        reason=reason,
        moves=tuple(moves),
        strategies=tuple(ran),
        freed_bytes=freed,
        archived_checkpoints=archived,
        utilisation=_utilisation(runtime, ref),
    )


def tend_files(runtime: Runtime, ref: SessionRef, *, roots: Sequence[str] = ()) -> tuple[CollectionReport, ...]:
    """What is due by now: an alert with an early collection, a collection, less in the tiers, an optimisation."""
    rules, now = runtime.settings.tiers, runtime.now()
    if runtime.store.kept_files.accesses.is_due(ref.key, moment=runtime.monotonic()):
        runtime.store.kept_files.settle(ref)
    times = runtime.store.kept_files.times(ref)
    utilisation = _utilisation(runtime, ref)
    reports: list[CollectionReport] = []
    is_crowded = utilisation > rules.alert_share
    if is_crowded != (times.crowded_at is not None):
        since = now if is_crowded else None
        runtime.store.kept_files.change(ref, rules=rules, times={"crowded_at": since})
    is_alert = is_crowded and times.crowded_at is None
    if is_alert:
        runtime.report(
            EventName.FILES_CROWDED,
            f"hot and warm are {utilisation:.0%} full, above {rules.alert_share:.0%}: an early collection starts",
            session_id=ref.session_id,
            utilisation=round(utilisation, 3),
        )
    if is_alert or _is_time(times.collected_at, now, rules.collect_seconds):
        reason = f"every {rules.collect_seconds:g} s" if not is_crowded else f"{utilisation:.0%} full"
        reports.append(collect(runtime, ref, reason=reason, roots=roots))
    _to_rest(runtime, ref)
    utilisation = _utilisation(runtime, ref)
    is_time = _is_time(times.optimised_at, now, rules.optimise_seconds)
    if is_time or (utilisation >= rules.optimise_share and _is_time(times.optimised_at, now, rules.collect_seconds)):
        reason = f"every {rules.optimise_seconds:g} s" if is_time else f"{utilisation:.0%} full"
        reports.append(optimise(runtime, ref, reason=reason))
    return tuple(reports)


def _is_time(last: float | None, now: float, seconds: float) -> bool:
    """Whether it is time again; also where the clock was set back behind the last time."""
    return last is None or now - last >= seconds or now < last


def _collected(runtime: Runtime, ref: SessionRef, **about: Any) -> tuple[TierMove, ...]:  # noqa: ANN401 - as `change_tiers` takes it
    rules, now = runtime.settings.tiers, runtime.now()
    return change_tiers(runtime, ref, lambda tiers: policy.collect(tiers, now=now, rules=rules), **about)


def _cleared(runtime: Runtime, ref: SessionRef) -> tuple[TierMove, ...]:
    begun = runtime.monotonic()
    gone = runtime.store.kept_files.clear_obsolete(ref)
    tell_moves(runtime, ref, gone, seconds=runtime.monotonic() - begun)
    return gone


def _utilisation(runtime: Runtime, ref: SessionRef) -> float:
    return runtime.store.kept_files.utilisation(ref, runtime.settings.tiers)


def _look_for_deleted(runtime: Runtime, ref: SessionRef, roots: Sequence[str]) -> None:
    """Note which files are gone from the disk; the memory's own go.

    One that is there costs a look at its name: what a path leads to is found out of those alone that seem gone.
    """
    if not roots:
        return
    kept, disk = runtime.store.kept_files, runtime.store.disk
    gone: list[str] = []
    for path in kept.on_disk(ref):
        if disk.own.has(Path(path)):  # an earlier version kept it
            kept.drop(ref, [path])
            continue
        if os.path.exists(path):  # noqa: PTH110 - a third of what `Path.exists` takes, for thousands of files
            continue
        try:
            disk.look(disk.place(path, roots=roots))
        except FileGoneError:
            gone.append(path)
        except FileRefusedError:
            continue  # a name that somebody gave, or a file of other roots
    if not gone:
        return
    kept.mark_deleted(ref, gone)
    for path in gone:
        runtime.report(EventName.FILE_DELETED, f"{path}: it is obsolete", session_id=ref.session_id, path=path)


def _told(
    runtime: Runtime,
    ref: SessionRef,
    what: Literal["collect_files", "optimise_files"],
    name: EventName,
    make: Callable[[], CollectionReport],
) -> CollectionReport:
    """Have it done within a span, and tell what was done."""
    with telemetry.operation(what, {telemetry.CONVERSATION: ref.session_id}) as note:
        report = make()
        figures = {"moves": len(report.moves), "freed_bytes": report.freed_bytes}
        about = figures | {"utilisation": report.utilisation}
        note({f"tiered_memory.file.{key}": value for key, value in about.items()})
    ran = f", {', '.join(report.strategies)}" if report.strategies else ""
    runtime.report(
        name,
        f"{report.reason}: {len(report.moves)} files moved{ran}; hot and warm {report.utilisation:.0%} full",
        session_id=ref.session_id,
        **figures,
        strategies=list(report.strategies),
        archived_checkpoints=report.archived_checkpoints,
        utilisation=round(report.utilisation, 3),
    )
    return report
