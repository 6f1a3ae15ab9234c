"""Commands that show what a model gets and what a session states, correct and rate it, and show the policy.

`tiered-memory ask`, `facts`, `correct`, `rate` and `policy`.
"""

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from langchain_tiered_memory.cli.care import say_gaps
from langchain_tiered_memory.cli.opening import existing_session, open_memory
from langchain_tiered_memory.cli.options import AsJson, Database, NoEmbeddings, ReadOnly, SessionId
from langchain_tiered_memory.cli.screen import heading, out, print_json, quote, say, short, show, tell
from langchain_tiered_memory.display.sheet import plural, table
from langchain_tiered_memory.settings import Settings, SettingsName, TreeSettings
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.types.records import Verdict, utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.contexts import Context

_BRIEF_LINES = 8
"""Lines of one text in a brief view."""
_BRIEF_MESSAGES = 4
"""Messages of one section in a brief view: the first, and the last three."""


def ask(
    db: Database,
    session: SessionId,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to ask about the session.", show_default=False)
    ],
    *,
    budget: Annotated[int, typer.Option(min=1, metavar="TOKENS", help="Budget of the context, in tokens.")] = 4000,
    view: Annotated[
        Literal["recall", "default"],
        typer.Option(
            metavar="recall|default",
            help="recall: nearly all room for evidence; default: the context of a running chat.",
        ),
    ] = "recall",
    brief: Annotated[bool, typer.Option("--brief", help="Only the first lines of each message.")] = False,
    no_embeddings: NoEmbeddings = False,
    read_only: ReadOnly = False,
    as_json: AsJson = False,
) -> None:
    """Print the context that a model would get for QUESTION, section by section. No model is called."""
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True, read_only=read_only) as memory:
        if not no_embeddings:
            say_gaps(memory.status())
        context = existing_session(memory, session).context(question, max_tokens=budget, view=view)
    if as_json:
        print_json(context)
    else:
        show_context_of(context, brief=brief)


def show_context_of(context: "Context", *, brief: bool) -> None:
    """Print what a context has and lacks, then its text, section by section.

    If `brief`, only the first lines of each text and a few messages.
    """
    show(context)
    messages = {message.id: message for message in context.messages}
    for section in context.sections:
        own = [messages[entry_id] for entry_id in section.entry_ids if entry_id in messages]
        if not section.text and not own:
            continue
        heading(f"{section.name} ({section.tokens:,} tokens)")
        if section.text:
            quote(_clipped(section.text, brief=brief))
        else:
            _quote_messages(own, brief=brief)


def _quote_messages(messages: "Sequence[BaseMessage]", *, brief: bool) -> None:
    from langchain_tiered_memory.conversations.turns import speaker_of  # noqa: PLC0415 - slow to import
    from langchain_tiered_memory.messages.message_text import text_of  # noqa: PLC0415 - likewise

    skipped = len(messages) - _BRIEF_MESSAGES if brief else 0
    for number, message in enumerate(messages):
        if skipped > 0 and number == 1:
            quote(f"... {plural(skipped, 'message')} more", style="dim")
        if number == 0 or number > skipped:
            quote(_clipped(text_of(message), brief=brief), by=f"{speaker_of(message)}: ")


def _clipped(text: str, *, brief: bool) -> str:
    lines = text.split("\n")
    if not brief or len(lines) <= _BRIEF_LINES:
        return text
    return "\n".join([*lines[:_BRIEF_LINES], f"... {plural(len(lines) - _BRIEF_LINES, 'line')} more"])


def facts(
    db: Database,
    session: SessionId,
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="Show only facts that match this, best first.", show_default=False),
    ] = None,
    *,
    most: Annotated[int, typer.Option("-k", min=1, metavar="N", help="Show at most this many.")] = 50,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also show facts that a correction replaced.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the facts of a session: each with its id, who said it, when, and in which messages."""
    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        found = existing_session(memory, session).facts(question, k=most + 1, superseded=superseded)
    shown = found[:most]
    if as_json:
        print_json(shown)
        return
    if not shown:
        say("no fact matches" if question else "no facts yet", where=out())
        return
    count = plural(len(shown), "fact")
    rows = [
        (
            short(fact.id),
            fact.text if fact.status == "active" else f"{fact.text} (superseded)",
            fact.speaker or fact.by,
            f"{utc(fact.at):%Y-%m-%d}",
            ", ".join(map(short, fact.message_ids)),
        )
        for fact in shown
    ]
    caption = f"the first {count}; -k shows more" if len(found) > most else count
    tell(table(caption, ("id", "fact", "by", "since", "messages"), rows, most=most))


def correct(
    db: Database,
    session: SessionId,
    fact: Annotated[
        str, typer.Argument(metavar="FACT", help="Id of the fact, as `facts` shows it.", show_default=False)
    ],
    statement: Annotated[
        str,
        typer.Argument(
            metavar="STATEMENT",
            help="What is true: a complete sentence that shares some words with the fact.",
            show_default=False,
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Replace a fact with your own statement. It becomes a message; forget that message to undo it."""
    with open_memory(db, must_exist=True) as memory:
        handle = existing_session(memory, session)
        new = handle.correct(fact, statement)
        handle.flush()
    if as_json:
        print_json(new)
        return
    say(f"{short(new.id)}: {new.text}", where=out())
    undo = f"tiered-memory forget {shlex.quote(db)} {shlex.quote(handle.session_id)} -m {short(new.message_ids[0])}"
    say(f"To undo it: {undo}", style="dim")


def rate(
    db: Database,
    session: SessionId,
    summary: Annotated[
        str,
        typer.Argument(
            metavar="SUMMARY", help="Its id, or the numbers of its messages, such as 1-40.", show_default=False
        ),
    ],
    verdict: Annotated[
        Verdict, typer.Argument(metavar="VERDICT", help="good, wrong or incomplete.", show_default=False)
    ],
    *,
    note: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What is right or missing. The new text will mention it.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rate a summary. Its writer rewrites a wrong or incomplete one.

    A model's summary waits until a program with the model rewrites it.
    """
    quiet = Settings(tree=TreeSettings(background=False))
    with open_memory(db, must_exist=True, settings=quiet) as memory:
        handle = existing_session(memory, session)
        rated = handle.rate(summary, verdict, note=note)
        if rated.stale and rated.model == RULES and not rated.by_rules:
            handle.flush()
            rated = next(one for one in handle.tree().summaries if one.id == rated.id)
    if as_json:
        print_json(rated)
        return
    say(f"{short(rated.id)}: called {verdict}", where=out())
    if rated.stale:
        say("It will be rewritten when its program next uses the session.", style="dim")
    elif verdict != "good":
        say(rated.text, where=out())


def policy(
    *,
    max_tokens: Annotated[int, typer.Option(min=1, metavar="TOKENS", help="Budget of the context, in tokens.")] = 8000,
    fixed: Annotated[
        int,
        typer.Option(
            min=0, metavar="TOKENS", help="Tokens of the budget that the system prompt and tool schemas take."
        ),
    ] = 0,
    settings: Annotated[
        SettingsName,
        typer.Option(metavar="NAME", help="Named settings to show: balanced or economy."),
    ] = "balanced",
    numbers: Annotated[bool, typer.Option("--numbers", help="Also show the numbers that no setting changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how much room each section of a context has in each mode, and what gives way if not everything fits."""
    from langchain_tiered_memory.context.numbers import NUMBERS, told  # noqa: PLC0415
    from langchain_tiered_memory.context.policy import (  # noqa: PLC0415
        LADDER,
        REASONS,
        SHOWN_MODES,
        policy_of,
    )

    chosen = Settings.named(settings)
    columns = {mode: policy_of(mode, max_tokens, fixed=fixed, settings=chosen) for mode in SHOWN_MODES}
    if as_json:
        figures = {one: {"value": getattr(NUMBERS, one), **asdict(about)} for one, about in told().items()}
        print_json({"modes": columns, "ladder": LADDER, "numbers": figures})
        return
    tell(
        table(
            f"{settings}, {max_tokens:,} tokens: the most of each section",
            ("section", *columns),
            [(row.section, *(one.row(row.section).tokens for one in columns.values())) for row in columns["talk"]],
        )
    )
    lines: list[str] = []
    for row in columns["talk"]:
        way = f"gives way at step {row.gives_way}" if row.gives_way else "does not give way"
        lines.append(f"{row.section}: {row.about}; {row.share:.1%} of {row.of} in talk, {way}")
    lines += ["", *(f"{mode}: {REASONS[mode]}" for mode in SHOWN_MODES), "", "If not everything fits:"]
    lines += [f"{step}. {section}: {what}" for step, (section, what) in enumerate(LADDER, 1)]
    for line in lines:
        say(line, where=out())
    if numbers:
        listed = [
            (
                one,
                f"{getattr(NUMBERS, one):g}",
                about.unit,
                f"{about.least:g} to {about.most:g}",
                f"{about.origin} by {about.by}" if about.by else about.origin,
            )
            for one, about in told().items()
        ]
        names = ("number", "value", "unit", "range", "origin")
        tell(table("numbers that no setting changes", names, listed, most=len(listed)))
