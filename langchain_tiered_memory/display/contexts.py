"""Sheets of contexts and of decisions about them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.display.sheet import (
    COLOURS,
    SPARE_COLOURS,
    Bar,
    Block,
    Changes,
    Fold,
    Part,
    Sheet,
    Words,
    brief,
    moment,
    number,
    percent,
    plural,
    table,
)
from langchain_tiered_memory.text.fencing import ID_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.contexts import Context, Section
    from langchain_tiered_memory.types.files import ContextSize
    from langchain_tiered_memory.types.outcomes import CostLedger, LedgerRow, Outcome, ViewDiff
    from langchain_tiered_memory.types.records import LeftOut

_SHOWN = 60
"""The most messages shown of a context (the first few and the last ones), and the most zones of a strip."""
_FIRST = 5


def context(one: Context) -> Sheet:
    """What is in, what was left out and why, what was decided, and the messages themselves."""
    guard, shown = one.guard, [section for section in one.sections if section.tokens or section.left_out]
    has_view = one.policy.mode.name not in ("recall", "minimal")  # those are made anew: no zone says how full a view is
    zone = f", zone {guard.zone}{', then made smaller' if guard.steps else ''}"
    tokens = f"{one.tokens:,} of {one.max_tokens:,} tokens ({percent(one.tokens / one.max_tokens)})"
    bar = Bar(
        caption="what takes the room",
        parts=tuple(Part(name=section.name, amount=section.tokens) for section in shown),
        total=one.max_tokens,
        is_named_below=True,
    )
    spare = iter(SPARE_COLOURS * len(shown))
    sections = table(
        "what is in",
        ("section", "tokens", "share", "shows"),
        [(one_of.name, one_of.tokens, percent(one_of.tokens / one.max_tokens), shows(one_of)) for one_of in shown],
        colours=[COLOURS.get(section.name) or next(spare) for section in shown],
    )
    notes = [f"{one.policy.mode.name}: {one.policy.mode.reason}"]
    before = f"{guard.used_tokens:,} tokens"
    if has_view and guard.used_tokens != one.tokens and before not in guard.outcome.why:
        notes.append(f"{before} before {'it was made smaller' if guard.steps else 'recall'}")
    if guard.window.source != "budget":
        notes.append(f"the window leaves {guard.window.limit:,} tokens")
    if guard.outcome.why:
        notes.append(f"{_named(guard.outcome.kind)}: {guard.outcome.why}")
    if guard.steps:
        notes.append(f"steps: {', '.join(guard.steps)}")
    notes += [f"repaired for the provider: {repair}" for repair in one.repairs]
    return Sheet(
        about=f"{tokens}, {plural(len(one.messages), 'message')}" + (zone if has_view else ""),
        notes=tuple(notes),
        blocks=(
            bar,
            sections,
            *left_out([(section.name, left) for section in shown for left in section.left_out]),
            Fold(caption="what the model sees", blocks=_messages(one.messages)),
        ),
    )


def section(one: Section) -> Sheet:
    """The text of one section."""
    blocks: list[Block] = [Words(text=one.text)] if one.text else []
    blocks += left_out([(one.name, left) for left in one.left_out])
    return Sheet(about=f"{one.name}: {one.tokens:,} tokens, {shows(one)}", blocks=tuple(blocks))


def left_out(found: Sequence[tuple[str, LeftOut]]) -> tuple[Block, ...]:
    """A table of what is not shown, if anything is not."""
    if not found:
        return (Words(text="nothing was left out"),)
    rows = [(name, _briefly(one.what), one.reason, one.tokens or None) for name, one in found]
    return (table("what stayed out", ("section", "what", "why", "tokens"), rows, most=20),)


def _briefly(what: str) -> str:
    """A span or a name, or enough of an id for `expand` and `pin`."""
    return brief(what, 40) if "-" in what or " " in what else what[:ID_CHARS]


def shows(one: Section) -> str:
    """What a section is made of, counted. Empty if it has nothing."""
    counts = (
        (len(one.entry_ids), "message"),
        (len(one.passage_ids), "passage"),
        (len(one.summary_ids), "summary"),
    )
    shown = [plural(count, noun) for count, noun in counts if count]
    shown += [f"{plural(one.not_shown, 'message')} in one line"] if one.not_shown else []
    return ", ".join(shown) or (plural(one.text.count("\n") + 1, "line") if one.text else "")


def _messages(messages: Sequence[BaseMessage]) -> tuple[Block, ...]:
    """Each message after its speaker. If there are many, those in the middle are only counted."""
    skipped = range(_FIRST, len(messages) - _SHOWN + _FIRST) if len(messages) > _SHOWN else range(0)
    blocks: list[Block] = []
    for place, message in enumerate(messages):
        if skipped and place == skipped[0]:
            blocks.append(Words(text=f"{len(skipped)} more messages"))
        if place not in skipped:
            calls = "".join(f"\n{call['name']}({call['args']})" for call in getattr(message, "tool_calls", ()))
            name = f" {message.name}" if message.name else ""
            blocks.append(Words(text=f"{message.type}{name}: {message.text}{calls}"))
    return tuple(blocks)


def _named(kind: str) -> str:
    return str(kind).replace("_", " ")


def outcome(one: Outcome) -> Sheet:
    """What was decided about a view, and why."""
    change = f"{one.tokens_before:,} to {one.tokens_after:,} tokens" if one.tokens_before else "no tokens"
    undone = " (undone)" if one.undone_at is not None else ""
    notes = [one.why] if one.why else []
    notes += [f"reason: {_named(one.reason)}"] if one.reason else []
    notes += [f"error: {one.error}"] if one.error else []
    return Sheet(
        about=f"{_named(one.kind)}: {change}{undone}",
        notes=tuple(notes),
        blocks=left_out([("view", left) for left in one.left_out]) if one.left_out else (),
    )


def outcomes(found: Sequence[Outcome]) -> Sheet:
    """Past decisions, newest first."""
    rows = [
        (
            _named(one.kind) + (", undone" if one.undone_at is not None else ""),
            one.tokens_before,
            one.tokens_after,
            one.messages_before - one.messages_after,
            one.why + (f" ({_named(one.reason)})" if one.reason else ""),
        )
        for one in found
    ]
    columns = ("outcome", "tokens before", "after", "messages left", "why")
    return Sheet(about=f"{len(found)}", blocks=(table("decisions, newest first", columns, rows),))


def ledger(found: Sequence[LedgerRow]) -> Sheet:
    """What left the views, newest first."""
    rows = [(_briefly(one.what), one.reason + (", came back" if one.undone else ""), one.tokens) for one in found]
    about = f"{plural(len(found), 'thing')} left the views; all of it is still in the transcript"
    return Sheet(about=about, blocks=(table("newest first", ("what", "why", "tokens"), rows),))


def view_diff(one: ViewDiff) -> Sheet:
    """What a condensation took out of a view, what stands there instead, and both texts."""
    sheet = outcome(one.outcome)
    left = [("view", left) for left in one.left]
    came = [(item.reason if item.tokens else f"{item.what}: {item.reason}", item.tokens or None) for item in one.came]
    fewer = one.outcome.tokens_before - one.outcome.tokens_after
    sizes = (Part(name="kept", amount=one.outcome.tokens_after), Part(name="freed", amount=max(fewer, 0)))
    return Sheet(
        about=sheet.about,
        notes=sheet.notes,
        blocks=(
            Bar(caption="the request before it", parts=sizes),
            *left_out(left),
            table("what came instead", ("what", "tokens"), came, most=20),
            Changes(caption="what stands for older history", before=one.text_before, after=one.text_after),
        ),
    )


def costs(one: CostLedger) -> Sheet:
    """What condensing spent and saved, and which condensations paid."""
    rows = [
        (
            moment(row.at),
            row.spent.input_tokens + row.spent.output_tokens,
            row.saved_tokens_per_call,
            row.calls_since,
            row.saved_tokens,
            "saves nothing"
            if row.breaks_even_after is None
            else f"{'yes' if row.paid else 'not yet'}, after {number(row.breaks_even_after)} calls",
        )
        for row in one.rows
    ]
    columns = ("when (UTC)", "spent", "saved per call", "calls since", "saved", "paid")
    money = (
        f", {number(one.spent_cost)} of {number(one.saved_cost or 0)} in money" if one.spent_cost is not None else ""
    )
    spent = one.spent.input_tokens + one.spent.output_tokens
    return Sheet(
        about=f"{spent:,} tokens spent, {one.saved_tokens:,} saved{money}",
        notes=(f"prompt caches began anew {plural(one.prefix_breaks, 'time')}",),
        blocks=(table("condensations, newest first, in tokens", columns, rows, most=12),),
    )


def window_use(found: Sequence[ContextSize]) -> Sheet:
    """How full the window was from call to call, as a strip of zones."""
    largest = max(found, key=lambda one: one.share, default=None)
    about = plural(len(found), "context")
    if largest is not None:
        about += f", up to {percent(largest.share)} of the window ({largest.tokens:,} of {largest.limit:,} tokens)"
    rows = [
        (moment(one.at), one.track, one.tokens, percent(one.share), one.zone) for one in list(reversed(found))[:_SHOWN]
    ]
    newest = table(
        "newest first", ("when (UTC)", "track", "tokens", "of the window", "zone"), rows, most=8, of=len(found)
    )
    return Sheet(about=about, blocks=(*zones(found), newest) if found else ())


def zones(found: Sequence[ContextSize]) -> tuple[Block, ...]:
    """Zones in the order of the calls, with how long a view stayed in each."""
    if not found:
        return ()
    parts = [Part(name=zone, amount=len(list(calls))) for zone, calls in groupby(one.zone for one in found)]
    return (Bar(caption="zones, call by call", parts=tuple(parts[-_SHOWN:]), unit="calls"),)
