"""A long run as a picture, where matplotlib is installed: window, tiers, access times and memory over the hours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COLOURS = {"hot": "tab:red", "warm": "tab:orange", "cold": "tab:blue", "new": "tab:gray"}
_HOUR = 3600.0


def draw(rows: Sequence[dict[str, Any]], to: Path) -> str | None:
    """Write the picture; else say why there is none.

    Args:
        rows: What the processes of a run wrote down.
        to: The file.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return "no picture: matplotlib is not installed (pip install matplotlib)"
    figure = Figure(figsize=(10, 10), layout="constrained")
    window, tiers, times, memory = figure.subplots(4, 1, sharex=True)
    contexts = [row for row in rows if row["kind"] == "context" and "share" in row]
    _line(window, contexts, "share", factor=100, color="tab:blue", linewidth=0.6)
    window.axhline(70, color="tab:red", linewidth=0.8, linestyle="--")
    window.set_ylabel("context, % of the window")
    window.set_ylim(0, 100)
    sizes = [row for row in rows if row["kind"] == "sizes"]
    for tier in ("hot", "warm", "cold"):
        flat = [{**row, "files": row["files"][tier]} for row in sizes]
        _line(tiers, flat, "files", color=_COLOURS[tier], label=tier)
    tiers.set_ylabel("files in the tier")
    tiers.set_yscale("symlog")
    tiers.legend(loc="upper left", fontsize=8)
    for tier, colour in _COLOURS.items():
        own = [row for row in rows if row["kind"] == "file" and row["tier"] == tier]
        hours = [row["at"] / _HOUR for row in own]
        times.plot(hours, [row["seconds"] * 1000 for row in own], ".", color=colour, markersize=3, label=tier)
    times.set_ylabel("access, ms")
    times.set_yscale("log")
    times.legend(loc="upper left", fontsize=8)
    _line(memory, sizes, "process_bytes", factor=1e-6, color="tab:green", label="process")
    _line(memory, sizes, "database_bytes", factor=1e-6, color="tab:purple", label="database")
    memory.set_ylabel("megabytes")
    memory.set_xlabel("hours of the run; dotted: a process was killed")
    memory.legend(loc="upper left", fontsize=8)
    for axes in (window, tiers, times, memory):
        for row in rows:
            if row["kind"] == "restored":
                axes.axvline(row["at"] / _HOUR, color="black", linewidth=0.8, linestyle=":")
    figure.savefig(to, dpi=120)
    return None


def _line(axes: Any, rows: Sequence[dict[str, Any]], name: str, *, factor: float = 1.0, **style: Any) -> None:  # noqa: ANN401 - matplotlib's
    axes.plot([row["at"] / _HOUR for row in rows], [row[name] * factor for row in rows], **style)
