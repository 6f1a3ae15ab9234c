"""Triggers of automatic checkpoints.

The reasons are those of the context-strategy design: over 80 percent of the window, another phase, every fifth finished
task, a risky operation ahead, half an hour gone by; and the two zones that ask for it, danger and critical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import ZONES, Zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.settings import CheckpointSettings

_SAVING_ZONES = (Zone.DANGER, Zone.CRITICAL)
RUN_END = "run_end"
"""The end of a run."""
_KINDS = {
    "task_milestone": "milestone",
    "phase_transition": "milestone",
    "risky_operation": "danger",
    Zone.DANGER.value: "danger",
    Zone.CRITICAL.value: "danger",
    "context_size": "routine",
    "time_interval": "routine",
    RUN_END: "routine",
}
"""Of each reason that is ours, what it stands for; any other is somebody's own name for a checkpoint."""


def kinds_of(reasons: Iterable[str]) -> frozenset[str]:
    """What a checkpoint stands for: each kind is kept by itself, so that none pushes another out."""
    return frozenset(_KINDS.get(reason, "named") for reason in reasons) or frozenset({"named"})


def is_over_share(used_tokens: int, window_tokens: int, *, settings: CheckpointSettings) -> bool:
    """Whether a request takes more of the window than `CheckpointSettings.window_share`."""
    return used_tokens > settings.window_share * window_tokens


def due_reasons(
    *,
    settings: CheckpointSettings,
    used_tokens: int = 0,
    window_tokens: int = 1,
    zone: Zone = Zone.SAFE,
    zone_before: Zone = Zone.SAFE,
    was_over_share: bool | None = None,
    phase_changed: bool = False,
    finished_task: int | None = None,
    operation: str | None = None,
    seconds_since_last: float | None = None,
) -> tuple[str, ...]:
    """Why a checkpoint is due now; empty where none is.

    Args:
        settings: Shares, numbers and names; with `enabled` off nothing is ever due.
        used_tokens: Of the whole request, before anything is pruned.
        window_tokens: Of the model's window.
        zone: What the request's zone is.
        zone_before: What the zone of the view's last request was.
        was_over_share: `is_over_share` of the view's last request: a crossing counts once, until a request is under the
            share again. `None`, where that is not known: then a fuller zone has to be entered besides.
        phase_changed: Whether the run just entered another phase.
        finished_task: The number of the task that was finished just now; `None` where none was.
        operation: What is about to be done.
        seconds_since_last: Since the newest checkpoint, else since the run's start. A clock that was set back makes it
            negative: nothing is due then.
    """
    if not settings.enabled:
        return ()
    is_fuller = ZONES.index(zone) > ZONES.index(zone_before)
    crossed = is_fuller if was_over_share is None else not was_over_share
    every, seconds = settings.tasks, settings.seconds
    found = {
        "context_size": crossed and is_over_share(used_tokens, window_tokens, settings=settings),
        "phase_transition": phase_changed,
        "task_milestone": every is not None and bool(finished_task) and (finished_task or 0) % every == 0,
        "risky_operation": operation is not None and operation in settings.operations,
        "time_interval": seconds is not None and seconds_since_last is not None and seconds_since_last > seconds,
        zone.value: is_fuller and zone in _SAVING_ZONES,
    }
    return tuple(reason for reason, is_due in found.items() if is_due)
