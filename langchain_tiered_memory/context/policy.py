"""The one policy by which a view is filled: a row for each section, a column for each mode.

It is resolved to tokens once a request, for the mode that was read for it. What stands in the plan outlives the message
that it was made beside, so there the smallest of the columns that hold counts; what is chosen for one request follows
the first column that holds. `docs/policy.md` explains the table. All figures are raw counts of our counter: a budget in
a model's own tokens is divided by what calibration learnt first.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.recall_budget import RecallBudget, set_aside
from langchain_tiered_memory.context.sections.registry import ChosenSections
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.types.contexts import Mode, ModeName, PolicyRow, ViewPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Request
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.contexts import Share
    from langchain_tiered_memory.types.records import Entry


REASONS: dict[ModeName, str] = {
    "recall": "the requested view is `recall`",
    "minimal": "the requested view is `minimal`",
    "asked": "the caller passes a `query`",
    "files": "the agent works on files",
    "loop": "the agent is in a tool loop",
    "question": "the user's last message asks for something older",
    "talk": "the conversation continues",
}
"""In the order in which the first that holds names the mode."""


def read_mode(request: Request, *, query: str, touched: Sequence[int], last_seq: int, asks: bool) -> Mode:
    """The mode of a request, as far as it is known before its view is; `query` is what is looked up.

    `touched` are the `seq`s of the latest messages that worked on files, newest first, as many as make an agent busy;
    `asks` is whether the user's last message asks for something older.
    """
    since = last_seq - NUMBERS.busy_among
    works = len(touched) == NUMBERS.busy_messages and touched[-1] > since
    holds: dict[ModeName, bool] = {
        "recall": request.view == "recall",
        "minimal": request.view == "minimal",
        "asked": request.asks,
        "files": works,
        "question": asks,
        "talk": not (works or request.asks),
    }
    return _of(
        [name for name, is_so in holds.items() if is_so],
        looks_up=bool(query.strip()),
        shows_parts=bool(touched) and touched[0] > since,
    )


def with_loop(mode: Mode, request: Request, newest: Sequence[Entry]) -> Mode:
    """The mode of a request whose view is known: in a tool loop, recall stays as it is until the user speaks again.

    A question of the caller's own is no part of a loop.
    """
    at_work = bool(request.tools) or any(entry.calls or entry.answers for entry in newest)
    if not at_work or request.query is not None:
        return mode
    return _of([*mode.names, "loop"], looks_up=mode.looks_up, shows_parts=mode.shows_parts)


def _of(names: Sequence[ModeName], *, looks_up: bool, shows_parts: bool) -> Mode:
    ordered = tuple(name for name in REASONS if name in names)
    return Mode(names=ordered, reason=REASONS[ordered[0]], looks_up=looks_up, shows_parts=shows_parts)


LEAVES_FOR_REQUIRED = ("parts", "files", "facts", "history")
"""What leaves a view, one after the other, where the messages that must be shown cannot even be read beside it."""
LADDER: tuple[tuple[str, str], ...] = (
    ("recall", "quotes recalled for earlier questions leave, the newest first"),
    ("recent", "tool outputs are masked, then summaries replace messages"),
    ("parts", "parts of files leave"),
    ("recent", "messages leave without a summary: the least important, or the oldest"),
    (
        "facts",
        "facts and summaries get shorter, down to their room beside a query",
    ),
    ("recent", "the longest required messages are cut to head and tail"),
    ("files", "the list of files leaves, then the facts, then the summaries"),
    ("recent", "only the essentials are shown, or an error says what takes the room"),
)
"""What gives way where not all fits, first to last: the section, and what happens to it."""
_WAYS = {section: step for step, (section, _) in reversed(list(enumerate(LADDER, 1)))}
"""The first step at which a section gives way; summaries do with the facts."""
_WAYS["history"] = _WAYS["facts"]


def no_room_beside(fixed: int, max_tokens: int, *, ratio: float) -> str:
    """What to say where system prompt and tools fill a budget."""
    return (
        f"the system prompt and the tool schemas take {math.ceil(fixed * ratio)} of {max_tokens} tokens and leave "
        "no room for a conversation: raise max_tokens, or shorten them"
    )


def resolved(
    max_tokens: int,
    *,
    fixed: int,
    ratio: float,
    mode: Mode,
    settings: Settings,
    given: RecallBudget,
    sections: ChosenSections,
) -> ViewPolicy:
    """The policy of a request, in tokens.

    Args:
        max_tokens: The budget, in the model's tokens.
        fixed: Raw tokens of the system prompt and the tool schemas.
        ratio: Billed tokens per raw token, from calibration.
        mode: What the request is.
        settings: The table's shares, where a user may turn them.
        given: What recall may take beside what the user said last.
        sections: What a user registered: it stands with recall, or in the place of a built-in section.

    Raises:
        BudgetError: when the budget is below 1. A fixed part that fills it is for the guard to see: `is_full`.
    """
    if max_tokens < 1:
        msg = f"max_tokens is {max_tokens}: a context needs a budget of at least 1 token"
        raise BudgetError(msg)
    total = math.floor(max_tokens / ratio)
    rest = max(total - fixed, 0)
    replaced = sections.replaced
    own = min(round(sections.share * total), rest) if "minimal" not in mode else 0
    looks_up = "recall" in mode or (mode.looks_up and "semantic_results" not in replaced)
    recall = set_aside(given, mode, settings.context, rest=rest) if looks_up else 0
    at_work = min(NUMBERS.recall_at_work_share, settings.context.recall_share)
    spared = max(round(at_work * rest) - recall, 0) if looks_up and "files" in mode else 0
    recall = min(recall + own, rest)
    view = rest - recall
    columns = table(settings, filled=max(view - spared, 0))

    def in_any_mode(section: str, whole: int) -> PolicyRow:
        row = columns[section]["talk"]
        return row.allowing(0 if section in replaced else row.within(whole))

    def plan(section: str) -> PolicyRow:
        """What stands in the plan outlives the message beside which it was made: the smallest column that holds."""
        found = [row for name, row in columns[section].items() if name == "talk" or name in mode]
        row = min(found, key=lambda row: row.within(total))
        return row.allowing(0 if "recall" in mode else row.within(total))

    def least(section: str) -> int:
        """What stays of the record beside required messages: no more than its room beside a query."""
        return min(plan(section).tokens, columns[section]["asked"].within(total))

    shares, quoted = settings.context.shares, round(settings.context.shares.user_queries * total)
    base: ModeName = "asked" if "asked" in mode else "talk"
    history, files, parts = plan("history"), in_any_mode("files", total), in_any_mode("parts", max(view - spared, 0))
    # What is chosen for one request follows the first column that holds.
    asked, grows = (
        next((columns[one][name] for name in mode.names if name in columns[one]), columns[one]["talk"])
        for one in ("recall", "recent")
    )
    rows = (
        in_any_mode("system", total),
        in_any_mode("goal", total),
        in_any_mode("pinned", total),
        history.allowing(0 if "recall" in mode else history.tokens + quoted),
        plan("facts"),
        parts.allowing(parts.tokens - files.tokens),
        files,
        grows.allowing(grows.within(total) if "recall" in mode else view),
        in_any_mode("parent", rest),
        asked.allowing(min(recall - own, asked.within(total)) if "minimal" in mode else recall - own),
    )
    return ViewPolicy(
        mode=mode,
        total=total,
        fixed=fixed,
        rows=rows,
        recall=recall,
        sections=own,
        spared=spared,
        cover=history.tokens,
        defended=round(NUMBERS.defended_share * columns["history"][base].within(total)),
        least_facts=least("facts"),
        least_cover=least("history"),
        queries=quoted,
        record=round((NUMBERS.record_at_work_share if "files" in mode else NUMBERS.record_share) * total),
        keep=0 if "recall" in mode else columns["recent"]["talk"].within(total),
        stays=plan("recent").tokens,
        recent_least=round(shares.recent_turns * total),
        code=0 if "code_results" in replaced else round(shares.code_results * total),
        summaries=0 if "level_1_summaries" in replaced else round(shares.level_1_summaries * total),
        quotes_queries="user_queries" not in replaced,
    )


SHOWN_MODES: tuple[ModeName, ...] = ("talk", "question", "files", "asked", "minimal", "recall")
"""Modes with a column of their own: a tool loop has that of the message that began it."""


def policy_of(mode: ModeName, max_tokens: int, *, fixed: int, settings: Settings) -> ViewPolicy:
    """The column of one mode (of `SHOWN_MODES`), for a request beside which recall takes as much as it may."""
    told = Mode(names=(mode,), reason=REASONS[mode], looks_up=True, shows_parts=mode == "files")
    talk, files = settings.context.talk_recall_share, NUMBERS.recall_at_work_share
    given = RecallBudget(share={"talk": NUMBERS.small_share, "question": talk, "files": files}.get(mode))
    none = ChosenSections()
    return resolved(max_tokens, fixed=fixed, ratio=1.0, mode=told, settings=settings, given=given, sections=none)


def table(settings: Settings, *, filled: int) -> dict[str, dict[ModeName, PolicyRow]]:
    """The policy: rows by section, and in each the columns by mode; a mode without one has that of `talk`.

    `filled` is what a condensation may fill of the budget: the view, less what recall was spared.
    """
    told, files, numbers = settings.context, settings.files, NUMBERS

    def row(section: str, share: float, about: str, *, of: Share = "the budget", **bounds: Any) -> PolicyRow:  # noqa: ANN401 - fields of a row
        return PolicyRow(section=section, share=share, of=of, gives_way=_WAYS.get(section, 0), about=about, **bounds)

    summaries = partial(row, "history", about="summaries of older messages")
    facts = partial(row, "facts", about="facts from older messages that still hold")
    recent = partial(row, "recent", about="messages that a condensation leaves; they grow into free room")
    recall = partial(row, "recall", of="the rest", stands="request")
    in_any = "quotes that answer the question"
    beside = summaries(min(told.cover_share, numbers.cover_beside_share))
    return {
        "system": {"talk": row("system", 1.0, "system prompt and tool schemas")},
        "goal": {"talk": row("goal", numbers.goal_share, "the first user message, until it is answered")},
        "pinned": {"talk": row("pinned", numbers.pins_share, "pinned messages")},
        "history": {
            "talk": summaries(told.cover_share),
            "asked": beside,
            "files": beside,
        },
        "facts": {
            "talk": facts(told.facts_share),
            "asked": facts(min(told.facts_share, numbers.facts_asked_share)),
            "files": facts(numbers.facts_at_work_share),
        },
        "parts": {
            "talk": row(
                "parts",
                numbers.filled_share,
                "parts of files, with everything before them and beside the list",
                of="the view",
                least=filled_at_least(settings, filled),
            )
        },
        "files": {"talk": row("files", files.share, "files that no other section names")},
        "recent": {
            "talk": recent(numbers.recent_most_share, most=told.keep_recent_tokens),
            "files": recent(numbers.working_share),
            "recall": row("recent", numbers.question_share, "the user's last message", stands="request"),
        },
        "parent": {"talk": row("parent", numbers.parent_share, "the parent's track", of="the rest", stands="request")},
        "recall": {
            "recall": recall(1.0, in_any),
            "minimal": recall(numbers.minimal_recall_share, in_any, of="the budget"),
            "asked": recall(told.recall_share, f"{in_any}, and all other free room"),
            "files": recall(
                min(numbers.recall_at_work_share, told.recall_share), f"{in_any}; what really answers it, in any case"
            ),
            "question": recall(
                min(told.recall_share, told.talk_recall_share), f"{in_any}; up to twice that if much matches"
            ),
            "talk": recall(min(numbers.small_share, told.recall_share), "quotes that answer the last message"),
        },
    }


def filled_at_least(settings: Settings, filled: int) -> int:
    """Of the tokens that a view may be filled to, those that hold all that an agent at work on files has at hand."""
    wanted = settings.room.working_tokens + round(NUMBERS.filled_least_share * filled)
    return min(wanted, NUMBERS.filled_least_tokens, filled)
