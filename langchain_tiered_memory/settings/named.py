"""Settings that have a name: how much is paid for how much in view. Measured by `benchmarks/cost_curve.py`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

SettingsName: TypeAlias = Literal["economy", "frugal", "balanced", "thorough"]

NAMED: dict[SettingsName, dict[str, dict[str, Any]]] = {
    "economy": {
        "room": {
            "least_share": 0.2,
            "working_tokens": 1_500,
            "least_tokens": 24_000,
            "extra_share": 0.05,
            "grows_to": "cheapest",
        },
        "context": {
            "keep_recent_tokens": 1000,
            "talk_recall_share": 0.02,
            "cover_share": 0.06,
            "facts_share": 0.14,
            "spare_for_cover": 0.0,
            "spare_for_facts": 0.0,
            "shares": {"level_1_summaries": 0.0},
        },
        "condensation": {"model_from_level": 3},
    },
    "frugal": {
        "room": {
            "least_share": 0.15,
            "working_tokens": 5_000,
            "least_tokens": 24_000,
            "extra_share": 0.25,
            "grows_to": "cheapest",
        },
        "condensation": {"model_from_level": 2},
    },
    "balanced": {},
    "thorough": {"room": {"least_share": 0.95, "extra_share": 4.0}, "context": {"talk_recall_share": 0.5}},
}
"""By name, what differs from the defaults, group by group.

Chosen by what is billed for what is in view on four agents' runs and a chat, beside other memories: the figures stand
in `docs/benchmarks.md`. `economy` in chats is facts and little else: quotes beside what is said cost most there. Its
file work, and that of `frugal`, grows more slowly than the window: 1,500 or 5,000 tokens at hand, and a fifth or less
of the room. On two runs of agents a condensing model read 93,000 tokens from level 1 on, 48,000 to 50,000 from level
2 on and 17,000 from level 3 on: both leave to rules what they show least of.
"""
