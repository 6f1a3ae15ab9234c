"""Writes docs/summaries.md, extractive summaries beside their sources: `python -m tests.summary_page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.conversations.reading import sample_conversation
from langchain_tiered_memory.driver import run
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import TreeSettings
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.writers.extractive import ExtractiveCondenser
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Role

PAGE = Path(__file__).parent.parent / "docs" / "summaries.md"
TOOLS = ("tool", "write_file", "run_command", "edit_file", "list_files", "calendar_add", "read_file")
COUNTER = EstimatingCounter()
AT = 1_772_539_200.0  # 3 March 2026
WALK = (
    ("Maria", "Hi Tom! We should plan the coast walk before the ferry tickets are gone. Which weekend suits you?"),
    ("Tom", "The last weekend of April. My sister Elena comes too, she was in Trieste until yesterday."),
    ("Maria", "Lovely. Then we are four with Jonas. Shall we sleep in the lighthouse hostel or in tents?"),
    ("Tom", "Elena has a bad knee, so the hostel. It costs 38 euros a night and takes bookings until 15 March."),
    ("Maria", "Agreed: we take the hostel for two nights, and I book it tomorrow with my card."),
    ("Tom", "Great, thanks! I look after the ferry. The one at 7:40 from Hollin is the only one that carries bikes."),
    ("Maria", "Do we need the bikes at all? The path behind the quarry is closed to them since the landslide."),
    ("Tom", "I had not heard of the landslide. Then no bikes, and we can take the ferry at 9:10 instead."),
    ("Maria", "Perfect. Jonas is allergic to nuts, so keep them out of the trail mix this time."),
    ("Tom", "I will. Who brings the map of the eastern cliffs?"),
)
REPAIR = (
    ("user", "The nightly export stopped on Monday. Please find out why and fix it. Never touch the billing tables."),
    ("assistant", 'I start with the log.\nread_file(path="var/log/export.log", lines=40)'),
    ("tool", "02:00:07 ERROR writer.py line 88: disk quota of 20 GB exceeded on /mnt/archive\n02:00:07 export stopped"),
    (
        "assistant",
        'The archive volume is full. I look for what fills it.\nrun_command(command="du -sh /mnt/archive/*")',
    ),
    ("tool", "17G /mnt/archive/2024\n1.2G /mnt/archive/2025\n1.8G /mnt/archive/tmp"),
    ("assistant", "The folder of 2024 holds 17 GB and was never compressed. Shall I compress it, or move it?"),
    ("user", "Compress it. And let the export check the free space before it starts."),
    ("assistant", 'run_command(command="tar --zstd -cf 2024.tar.zst 2024")\nedit_file(path="export/writer.py")'),
    ("tool", "2024.tar.zst written, 2.3 GB"),
    ("assistant", "Fixed: the folder has 2.3 GB now, and writer.py stops a start below 5 GB. Monday is to be rerun."),
)
INTRODUCTION = """# What summaries look like without a model

The extractive condenser wrote these summaries. It needs no key and no download. Every sentence comes from its source.
The condenser only adds the headings and a few words (`asked`, `Answer`, `Reply`, `used`).
`python -m tests.summary_page` makes this page, and a test compares it with the code.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title, note, said in (
        ("Two people plan a walk", "Ten messages, level 1, half of their tokens.", list(WALK)),
        ("An agent repairs an export", "Ten messages with calls and results, level 1.", list(REPAIR)),
    ):
        job = _job([_message(number, *one) for number, one in enumerate(said)], level=1)
        parts.append(_shown(title, note, "\n".join(f"{who}: {text}" for who, text in said), _condensed(job)))
    below = _level_1(first=0, count=50)
    merged = _job(below, level=2)
    text = "\n\n".join(source.text for source in below)
    note = "The first fifty messages of the bundled sample. A level-2 summary is made from five level-1 summaries."
    parts.append(_shown("Three weeks with a seed library", note, text, _condensed(merged)))
    return "\n".join(parts)


def _shown(title: str, note: str, source: str, summary: str) -> str:
    return f"## {title}\n\n{note}\n\nSource:\n\n~~~text\n{source}\n~~~\n\nSummary:\n\n~~~text\n{summary}\n~~~\n"


def _level_1(*, first: int, count: int) -> list[SourceText]:
    turns = sample_conversation().turns[first : first + count]
    made: list[SourceText] = []
    for start in range(0, len(turns), 10):
        chunk = [
            _message(start + place, turn.speaker, text_of(turn.message), at=turn.at.timestamp() if turn.at else AT)
            for place, turn in enumerate(turns[start : start + 10])
        ]
        text = _condensed(_job(chunk, level=1))
        made.append(
            SourceText(id=f"s{start}", text=text, tokens=COUNTER.count_text(text), at=chunk[-1].at, seq=chunk[-1].seq)
        )
    return made


def _message(number: int, speaker: str, text: str, at: float = AT) -> SourceText:
    roles: dict[str, Role] = {"assistant": "assistant"}
    roles.update(dict.fromkeys(TOOLS, "tool"))
    return SourceText(
        id=f"m{number}",
        text=text,
        tokens=COUNTER.count_text(text) + 4,
        at=at,
        seq=number + 1,
        speaker=speaker,
        role=roles.get(speaker, "user"),
    )


def _job(sources: list[SourceText], *, level: int) -> CondenseJob:
    settings = TreeSettings().level(level)
    size = target_and_cap(settings, sum(source.tokens for source in sources))
    return CondenseJob(
        level=level,
        strategy=settings.strategy,
        sources=tuple(sources),
        facts=(),
        target_tokens=size.target_tokens,
        max_tokens=size.max_tokens,
        session_id="page",
        title=None,
        participants=tuple(dict.fromkeys(source.speaker for source in sources if source.speaker)),
        first_at=sources[0].at,
        last_at=sources[-1].at,
        message_count=len(sources),
    )


def _condensed(job: CondenseJob) -> str:
    return run(ExtractiveCondenser(COUNTER.count_text).condense(job)).text


if __name__ == "__main__":
    main()
