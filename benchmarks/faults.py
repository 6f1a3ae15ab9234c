"""What happens when things go wrong: kills, many writers, damaged rows, a full disk, bad summarisers, hostile texts.

Each trial counts as survived where the memory went on or refused with an error of its own, kept every acknowledged
message, and found itself whole afterwards. A lost message is one that was acknowledged and is not there. Kills and
writers are tried on LangChain community's histories too, in the same run.

    python -m benchmarks.faults --kills 30 --characters 100000
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fault_texts import MARK, bad_summarisers, hostile_texts
from benchmarks.fault_writers import (
    OURS,
    PARTIES,
    acknowledged,
    fill_the_disk,
    start,
    write_some,
    write_until_killed,
)
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show
from langchain_tiered_memory import Settings, TieredMemory, TieredMemoryError
from langchain_tiered_memory.conversations import sample_conversation
from langchain_tiered_memory.settings import TreeSettings
from langchain_tiered_memory.sql.schema import metadata
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TRUTH = {
    "ltm_entries": {"session_key", "seq", "id_digest", "message_id", "payload", "revision", "track", "at", "digest"},
    "ltm_revisions": {"session_key", "seq", "revision", "payload", "digest", "replaced_at"},
    "ltm_sessions": {"key", "digest", "session_id", "owner", "owner_digest", "title", "created_at", "ended_at"},
    "ltm_meta": {"name", "value"},
    "ltm_migrations": {"number", "name", "applied_at"},
}
"""What was given and is made from nothing else: damage there is damage to the truth, which no derivation mends."""
_GARBAGE = ("{not json", "-7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One thing that was done to a memory."""

    fault: str
    name: str
    party: str = OURS
    survived: bool
    lost: int
    why: str = ""
    """What went wrong, where something did."""


def kills(count: int, *, seed: int) -> Iterator[Trial]:
    """Kill a writer at a random moment, again and again, in one folder."""
    for party in _parties():
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            written: list[str] = []
            for number in range(count):
                child, pipe = start(write_until_killed, party, folder, f"w{number}")
                pipe.poll(60)
                time.sleep(chance.uniform(0.0, 0.25))
                child.kill()
                child.join(30)
                written += acknowledged(pipe)
                yield _kept(party, folder, written, fault="kills", name=f"kill {number}")


def writers(processes: Sequence[int], *, messages: int) -> Iterator[Trial]:
    """Have several processes write to one session at once."""
    for party in _parties():
        for count in processes:
            with tempfile.TemporaryDirectory() as folder:
                PARTIES[party](folder)  # made before, so that only writing is tried
                running = [start(write_some, party, folder, f"w{number}", messages) for number in range(count)]
                for child, _ in running:
                    child.join(120)
                written = [text for _, pipe in running for text in acknowledged(pipe)]
                trial = _kept(party, folder, written, fault="writers", name=f"{count} at once")
                refused = count * messages - len(written)
                why = f"{refused} writes refused or never finished" if refused else trial.why
                yield replace(trial, survived=trial.survived and not refused, why=why)


def damaged_rows(*, every: int) -> Iterator[Trial]:
    """Write garbage into every derived column in turn, or each `every`th; look at it, and have the doctor mend it."""
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "sound.db"
        said = _sample_memory(sound)
        for table in metadata.sorted_tables:
            for column in table.columns:
                if column.name in _TRUTH.get(table.name, ()) or column.computed is not None or column.primary_key:
                    continue
                number += 1
                if number % every:
                    continue
                for garbage in _GARBAGE:
                    with tempfile.TemporaryDirectory() as apart:
                        copy = Path(apart) / "damaged.db"
                        shutil.copyfile(sound, copy)
                        if _planted(copy, table.name, column.name, garbage):
                            yield _looked_after(copy, said, f"{table.name}.{column.name} = {garbage}")


def full_disk(sizes: Sequence[int]) -> Iterator[Trial]:
    """Let no file pass a size, write until that is refused, and read on."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            Ours = PARTIES[OURS]  # noqa: N806 - a class
            Ours(folder)
            child, pipe = start(fill_the_disk, folder, size)
            child.join(120)
            *written, verdict = acknowledged(pipe) or ["it ended without a word"]
            trial = _kept(OURS, folder, written, fault="full disk", name=f"{size:,} bytes")
            read = verdict == "read"
            yield replace(trial, survived=trial.survived and read, why=trial.why if read else verdict)


def summarisers(*, messages: int) -> Iterator[Trial]:
    """Condense the sample conversation with models that misbehave."""
    turns = sample_conversation().turns[:messages]
    settings = Settings(tree=TreeSettings(deadline_seconds=0.1))
    for name, answer in bad_summarisers().items():
        with TieredMemory.open(model=ScriptedModel(answers=answer), embeddings=None, settings=settings) as memory:
            session = memory.session("s")
            why, over = "", 0
            try:
                for turn in turns:
                    session.add_messages([turn.message], at=turn.at)
                    over += session.context(max_tokens=1500).tokens > 1500  # noqa: PLR2004 - as asked for
                session.flush(timeout=20)
                over += session.context(max_tokens=1500).tokens > 1500  # noqa: PLR2004 - as above
                sound = _sound_summaries(memory)
                why = f"{sound} bad summaries count as sound" if sound else f"{over} contexts over" if over else ""
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                why = f"{type(error).__name__}: {error}"
            lost = len(turns) - len(session.messages())
            yield Trial(fault="bad summarisers", name=name, survived=not why and not lost, lost=lost, why=why)


def texts(*, characters: int) -> Iterator[Trial]:
    """Store, condense, show and find texts that break programs; each must come back as it was."""
    for name, text in hostile_texts(characters).items():
        with TieredMemory.open(embeddings=None) as memory:
            session = memory.session("s")
            why = ""
            try:
                session.add_messages([("user", "Hello."), ("assistant", text), ("user", text), ("assistant", "Well.")])
                session.flush()
                session.context(text[:2000], max_tokens=2000)
                session.search(text[:2000])
                kept = [message.text for message in session.messages()]
                lost = 0 if kept == ["Hello.", text, text, "Well."] else 1
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                why, lost = f"{type(error).__name__}: {error}", 0
            yield Trial(fault="hostile texts", name=name, survived=not why and not lost, lost=lost, why=why)


def measure(
    *,
    kill_count: int,
    processes: Sequence[int],
    messages: int,
    characters: int,
    disk_sizes: Sequence[int],
    every: int = 1,
    seed: int = 1,
) -> Report:
    """Try everything."""
    trials = [
        *kills(kill_count, seed=seed),
        *writers(processes, messages=messages),
        *damaged_rows(every=every),
        *full_disk(disk_sizes),
        *summarisers(messages=messages),
        *texts(characters=characters),
    ]
    by_kind: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_kind[trial.fault, trial.party].append(trial)
    rows = tuple(
        (fault, party, len(found), sum(one.survived for one in found), max(one.lost for one in found))
        for (fault, party), found in by_kind.items()
    )
    ours = [trial for trial in trials if trial.party == OURS]
    failed = [trial for trial in ours if not trial.survived]
    lost = sum(trial.lost for trial in ours)
    report = Report(
        benchmark="faults",
        about="what goes wrong, and what is left afterwards",
        settings={"kills": kill_count, "writers": ", ".join(map(str, processes)), "characters": characters},
        grids=(
            Grid(title="faults", columns=("fault", "party", "tried", "survived", "messages lost"), rows=rows),
            *(
                [
                    Grid(
                        title="not survived by this memory",
                        columns=("fault", "which", "why"),
                        rows=tuple((one.fault, one.name, one.why) for one in failed),
                    )
                ]
                if failed
                else []
            ),
        ),
        figures={"trials": [asdict(one) for one in trials]},
        targets=(
            Target(aim="no acknowledged message is lost", measured=f"{lost} lost", met=lost == 0),
            Target(
                aim="every fault is survived",
                measured=f"{len(ours) - len(failed)} of {len(ours)}",
                met=not failed,
            ),
        ),
    )
    show(report)
    return report


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--writers", default="4,8", help="processes at once")
    parser.add_argument("--messages", type=int, default=60, help="of each writer, and of each bad summariser's session")
    parser.add_argument("--characters", type=int, default=100_000, help="of each hostile text")
    parser.add_argument("--disk-sizes", default="600000,1000000,2000000", help="bytes that no file may pass")
    parser.add_argument("--columns", type=int, default=1, metavar="N", help="damage only each Nth column")
    asked = parser.parse_args(arguments_given)
    report = measure(
        kill_count=asked.kills,
        processes=[int(part) for part in asked.writers.split(",")],
        messages=asked.messages,
        characters=asked.characters,
        disk_sizes=[int(part) for part in asked.disk_sizes.split(",")],
        every=asked.columns,
    )
    finish([report], asked.json)
    return [report]


def _parties() -> list[str]:
    try:
        __import__("langchain_community.chat_message_histories")
    except ImportError:
        print("langchain-community is not installed: its histories are left out")
        return [OURS]
    return list(PARTIES)


def _kept(party: str, folder: str, written: Sequence[str], *, fault: str, name: str) -> Trial:
    """Whether all that was acknowledged is there, once, and our memory finds itself whole."""
    try:
        store = PARTIES[party](folder)
        there = store.texts()
        problems: Sequence[object] = ()
        memory = getattr(store, "memory", None)
        if memory is not None:
            memory.doctor()
            problems = memory.verify().problems
            memory.close()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        why = f"{type(error).__name__}: {error}"
        return Trial(fault=fault, name=name, party=party, survived=False, lost=len(written), why=why)
    lost = len(set(written) - set(there))
    doubled = len(there) - len(set(there))
    why = f"{lost} lost" if lost else f"{doubled} doubled" if doubled else str(problems[0]) if problems else ""
    return Trial(fault=fault, name=name, party=party, survived=not why, lost=lost, why=why)


def _sample_memory(path: Path) -> list[str]:
    """A session with summaries, a run, checkpoints, outcomes and files; what was said in it."""
    settings = Settings(tree=TreeSettings(background=False))
    with TieredMemory.open(path, embeddings=None, settings=settings) as memory:
        session = memory.session("s")
        session.start_task("repairs")
        for turn in sample_conversation().turns[:120]:
            session.add_messages([turn.message], at=turn.at)
        session.flush()
        session.context("pump", max_tokens=2000)
        session.finish_task("repairs")
        session.checkpoint("by hand")
        said = [str(message.text) for message in session.messages()]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return said


def _sound_summaries(memory: TieredMemory) -> int:
    """Summaries that say what only a bad summariser says, and are not marked degraded."""
    store = memory.core.runtime.store
    kept = [row for ref in store.transcript.sessions() for row in store.inspection.summary_rows(ref)]
    return sum(MARK in summary.text and not summary.degraded for summary, *_ in kept)


def _planted(path: Path, table: str, column: str, garbage: str) -> bool:
    """Write garbage into the first row's column; whether there was a row that took it."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            place = f"WHERE rowid = (SELECT min(rowid) FROM {table} WHERE {column} IS NOT NULL)"
            changed = connection.execute(f"UPDATE {table} SET {column} = ? {place}", (garbage,)).rowcount
            connection.commit()
        except sqlite3.Error:  # a key of another row, or a virtual table's
            return False
    return changed > 0


def _looked_after(path: Path, said: Sequence[str], name: str) -> Trial:
    why, lost = "", 0
    try:
        with TieredMemory.open(path, embeddings=None, settings=Settings(tree=TreeSettings(background=False))) as memory:
            session = memory.session("s")
            memory.verify()
            session.context("pump", max_tokens=2000)
            session.search("pump")
            memory.flush()
            memory.doctor()
            lost = len(said) - sum(one == other for one, other in zip(_texts(memory), said, strict=False))
            left = memory.verify().problems
            why = f"left: {left[0].kind}: {left[0].detail}" if left else f"{lost} lost" if lost else ""
    except TieredMemoryError as error:
        why = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        why = f"not an error of ours: {type(error).__name__}: {error}"
    return Trial(fault="damaged rows", name=name, survived=not why, lost=lost, why=why)


def _texts(memory: TieredMemory) -> list[str]:
    return [str(message.text) for message in memory.session("s").messages()]


if __name__ == "__main__":
    main()
