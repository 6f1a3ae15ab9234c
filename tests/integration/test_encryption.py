"""An encrypted database: what is on the disk says nothing, the wrong key says so, and a key can be changed."""

from __future__ import annotations

import logging
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import TieredMemory, TieredStore
from langchain_tiered_memory.errors import (
    KeyNeededError,
    NotEncryptedError,
    NotOurDatabaseError,
    SettingsError,
    StorageConflictError,
    StorageError,
    WrongKeyError,
)
from langchain_tiered_memory.sql.encryption import FileKey, _salt_of, encrypt_copy
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.file_builders import HEADING, keep_in_all_tiers
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of, summaries_of
from tests.store_builders import ENCRYPTED, key_of_tests
from tests.writers import killed, mend_then_write, rotate_keys, start

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.slow

WORDS = ("zanzibar", "quokka", "ocarina", "marzipan", "periwinkle", "xylophone", "halcyon", "kumquat", HEADING[:40])
"""Each is planted in another place; the last one begins the files that tests keep."""
RUN = "import sys, tests.store_builders; from langchain_tiered_memory.cli.app import run; sys.exit(run(sys.argv[1:]))"
"""The command line, with the derivation of tests."""
BY_WORDS = False
both = pytest.mark.parametrize("call_style", CALL_STYLES)


def planted(memory: TieredMemory) -> None:
    """A word of `WORDS` in each place where content stands: messages, summaries, facts, names, files, items ..."""
    session = memory.session("s", user=WORDS[0], title=WORDS[1])
    session.add_messages(
        [
            HumanMessage(
                f"I'm allergic to {WORDS[2]}, and my {WORDS[3]} of order {number} is {number}7 kg.", id=f"m{number}"
            )
            for number in range(30)
        ]
    )
    memory.session("s", user=WORDS[0], track=WORDS[4]).add_messages([AIMessage(f"{WORDS[2]} on a track", name="n")])
    session.start_task(WORDS[5])
    session.checkpoint(project={"note": WORDS[5]})
    session.pin("m3")
    keep_in_all_tiers(store_of(memory), ref_of(session))
    TieredStore(memory, user=WORDS[0]).put((WORDS[6],), "k", {"text": WORDS[7]})
    session.context(f"How heavy is the {WORDS[3]}?", max_tokens=700)
    memory.flush()
    session.forget(message_ids=["m5"])
    assert session.search(WORDS[3])
    assert memory.facts(user=WORDS[0])
    assert summaries_of(session)


def words_in(folder: Path, words: Iterable[str] = WORDS) -> dict[str, set[str]]:
    """Which of the words stand in which files below a folder, in any case, as UTF-8 or UTF-16."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        here = {word for word in words for form in ("utf-8", "utf-16-le", "utf-16-be") if word.encode(form) in content}
        found |= {path.name: here} if here else {}
    return found


def test_no_file_has_a_word_of_what_was_said_while_it_runs_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    log = logging.FileHandler(tmp_path / "events.log")
    caplog.set_level(logging.DEBUG, logger="langchain_tiered_memory")
    logging.getLogger("langchain_tiered_memory").addHandler(log)
    try:
        with open_memory(
            tmp_path / ENCRYPTED, embeddings=HashingEmbeddings(), chroma=str(tmp_path / "vectors"), clock=lambda: 1e9
        ) as memory:
            planted(memory)
            assert list((tmp_path / "vectors").rglob("*.sqlite3"))
            assert (tmp_path / f"{ENCRYPTED}-wal").stat().st_size > 0
            assert words_in(tmp_path) == {}
            memory.rebuild_index()
            assert memory.verify().problems == ()
        assert words_in(tmp_path) == {}
    finally:
        logging.getLogger("langchain_tiered_memory").removeHandler(log)
        log.close()


def test_the_same_journey_without_a_key_leaves_every_word(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        planted(memory)
        assert set().union(*words_in(tmp_path).values()) == set(WORDS)


def test_a_process_that_is_killed_while_it_writes_leaves_no_word_and_loses_none(tmp_path: Path) -> None:
    chance, said, acknowledged = random.Random(7), ("new bolts", "lighthouse", "invoice"), list[str]()
    for number in range(8):
        after, seconds = 2 if number % 4 else 1, chance.uniform(0.0, 0.3)
        for kind, what in killed(
            mend_then_write, str(tmp_path / ENCRYPTED), BY_WORDS, f"w{number}", after=after, seconds=seconds
        ):
            assert kind == "written" or not what
            acknowledged += what if kind == "written" else []
        assert words_in(tmp_path, said) == {}
    with open_memory(tmp_path / ENCRYPTED) as memory:
        assert len(acknowledged) >= 12
        assert set(acknowledged) <= {message.id for message in memory.session("s").messages()}
        assert memory.verify().problems == ()


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (lambda: "another key, of which nobody knows", WrongKeyError, "give the key that it was last"),
        (lambda: b"a key that only tests hav\xff", WrongKeyError, "give the key"),
        (None, KeyNeededError, "encryption_key="),
        (lambda: "short", SettingsError, "at least 16 bytes"),
        (lambda: None, SettingsError, "NoneType"),
        ("a key that only tests have", SettingsError, "a function that returns the key"),
        (lambda: {}["vault"], KeyNeededError, "KeyError"),
    ],
)
@both
def test_a_key_that_cannot_be_used_is_refused_with_what_to_do(
    tmp_path: Path, *, key: Any, error: type[Exception], says: str, call_style: CallStyle
) -> None:
    path = tmp_path / "memory.db"
    with TieredMemory.open(path, embeddings=None, encryption_key=key_of_tests) as memory:
        memory.session("s").add_messages(conversation(1))
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(error) as raised:
            told(call_style, TieredMemory.open, path, embeddings=None, encryption_key=key, read_only=read_only)
        assert says in str(raised.value)
        assert key_of_tests() not in f"{raised.value!r}"
    assert path.read_bytes() == before


def test_a_plain_file_takes_no_key(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db"), pytest.raises(NotEncryptedError, match="open in this process without"):
        TieredMemory.open(tmp_path / "memory.db", embeddings=None, encryption_key=key_of_tests)
    before = (tmp_path / "memory.db").read_bytes()
    with pytest.raises(NotEncryptedError, match="tiered-memory encrypt"):
        TieredMemory.open(tmp_path / "memory.db", embeddings=None, encryption_key=key_of_tests)
    assert (tmp_path / "memory.db").read_bytes() == before


def test_a_key_is_told_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    events: list[Any] = []
    with open_memory(tmp_path / ENCRYPTED) as memory:
        memory.subscribe(events.append)
        planted(memory)
        with pytest.raises(WrongKeyError) as raised:
            open_memory(tmp_path / ENCRYPTED, encryption_key=lambda: key_of_tests() + "!")
        memory.rotate_key(key_of_tests)
        database = store_of(memory).database
        shown = f"{memory!r}{memory}{memory.status()}{memory.verify()}{vars(database)}"
        assert database._key is not None
    said = f"{shown}{raised.value!r}{events}{caplog.text}{capfd.readouterr()}"
    assert key_of_tests() not in said
    assert len(database._key._pages) > 64
    assert database._key._pages[:64] not in said


def test_what_has_no_file_takes_no_key_and_no_text_goes_to_chroma(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="in-memory database ends with the process"):
        TieredMemory.open(encryption_key=key_of_tests)
    with pytest.raises(SettingsError, match="PostgreSQL is encrypted where it runs"):
        TieredMemory.open("postgresql://nobody@127.0.0.1:1/none", encryption_key=key_of_tests)
    settings = quick_settings()
    with_texts = settings.model_copy(update={"recall": settings.recall.model_copy(update={"chroma_documents": True})})
    with pytest.raises(SettingsError, match="chroma_documents"):
        open_memory(tmp_path / ENCRYPTED, settings=with_texts)


def test_search_is_by_words_until_a_place_for_vectors_is_named(tmp_path: Path) -> None:
    path = tmp_path / ENCRYPTED
    with open_memory(path, embeddings=HashingEmbeddings()) as memory:
        memory.session("s").add_messages(conversation(2))
        memory.flush()
        assert memory.status().chroma is None
        assert "would not be" in memory.status().gaps[0]
        assert not list(tmp_path.glob("*.chroma"))
    with open_memory(path, embeddings=HashingEmbeddings(), chroma=str(tmp_path / "vectors")) as memory:
        memory.flush()
        assert memory.status().vectors == memory.status().passages > 0


@both
def test_a_key_is_changed_while_others_have_the_database_open(tmp_path: Path, call_style: CallStyle) -> None:
    path, now = tmp_path / ENCRYPTED, list[str | bytes]([key_of_tests()])
    others = TieredMemory.open(path, embeddings=None, encryption_key=lambda: now[0])
    stale = TieredMemory.open(path, embeddings=None, encryption_key=key_of_tests)
    with others, stale, open_memory(path) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(3))
        assert len(others.session("s").messages()) == len(stale.session("s").messages()) == 6
        assert told(call_style, memory.rotate_key, lambda: b"\0 a new key of bytes, NUL included")
        now[0] = b"\0 a new key of bytes, NUL included"
        told(call_style, session.add_messages, conversation(1, start=3))
        assert len(others.session("s").messages()) == 8
        told(call_style, others.session("s").add_messages, conversation(1, start=4))
        with pytest.raises(WrongKeyError):
            stale.session("s").add_messages(conversation(1, start=5))
        assert memory.verify().problems == ()
    with pytest.raises(WrongKeyError):
        open_memory(path)
    with TieredMemory.open(path, embeddings=None, encryption_key=lambda: now[0], read_only=True) as memory:
        assert len(memory.session("s").messages()) == 10


def test_an_open_read_is_told_of_and_a_key_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    impatient = quick_settings().model_copy(update={"busy_seconds": 0.3})
    with (
        open_memory(tmp_path / ENCRYPTED, settings=impatient) as memory,
        open_memory(tmp_path / ENCRYPTED, settings=impatient) as other,
    ):
        memory.session("s").add_messages(conversation(2))
        with pytest.raises(SettingsError, match="16 bytes"):
            memory.rotate_key(lambda: "short")
        with store_of(other).database.snapshot():
            assert len(other.session("s").messages()) == 4
            assert memory.rotate_key(lambda: "a second key, only for tests") is False
            assert len(other.session("s").messages()) == 4  # of the state that it reads, under the key of then
        assert memory.rotate_key(key_of_tests) is True
        assert len(other.session("s").messages()) == 4
    with open_memory() as plain, pytest.raises(SettingsError):
        plain.rotate_key(key_of_tests)


def test_a_rotation_that_wrote_nothing_is_told_and_the_memory_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def writes_nothing(key: FileKey, connection: Any) -> None:
        """As SQLCipher does on a full disk: it says "ok"."""
        key._derive(_salt_of(connection))

    monkeypatch.setattr(FileKey, "rekey", writes_nothing)
    with open_memory(tmp_path / ENCRYPTED) as memory:
        memory.session("s").add_messages(conversation(2))
        with pytest.raises(StorageError, match="the old key opens it"):
            memory.rotate_key(lambda: "a second key, only for tests")
        memory.session("s").add_messages(conversation(1, start=5))
        assert len(memory.session("s").messages()) == 6


def test_who_was_left_behind_by_a_rotation_is_told_to_try_again_and_can(tmp_path: Path) -> None:
    path, now = tmp_path / ENCRYPTED, list[str | bytes]([key_of_tests()])
    alone = quick_settings(background=False)  # a worker of its own may meet the new key before, and ask again
    with (
        TieredMemory.open(path, settings=alone, embeddings=None, encryption_key=lambda: now[0]) as other,
        open_memory(path) as memory,
    ):
        other.session("s").add_messages(conversation(2))
        now[0] = "a second key, only for tests"
        memory.rotate_key(lambda: now[0])
        with pytest.raises(StorageConflictError, match="try again"):
            other.rotate_key(lambda: "a third key, only for tests")
        assert other.rotate_key(lambda: "a third key, only for tests") in (True, False)
        assert len(other.session("s").messages()) == 4


def test_a_rotation_that_is_killed_leaves_the_old_key_or_the_new_one_and_every_message(tmp_path: Path) -> None:
    path, chance = tmp_path / ENCRYPTED, random.Random(3)
    with open_memory(path) as memory:
        memory.session("s").add_messages([HumanMessage(f"{number} " * 400, id=f"m{number}") for number in range(400)])
    keys = [key_of_tests(), "a second key, only for tests"]
    for number in range(6):
        child, pipe = start(rotate_keys, str(path), keys)
        assert pipe.recv() == "ready"
        if number % 3 == 0:
            assert pipe.recv() == "rotated"
        time.sleep(chance.uniform(0.0, 0.3))
        child.kill()
        child.join()
        opens = []
        for place, key in enumerate(keys):
            with (
                suppress(WrongKeyError),
                TieredMemory.open(path, embeddings=None, encryption_key=lambda key=key: key) as one,
            ):
                assert len(one.session("s").messages()) == 400
                assert one.verify().problems == ()
                opens.append(place)
        assert len(opens) == 1


def test_a_plain_database_is_copied_into_an_encrypted_one_as_it_is(tmp_path: Path) -> None:
    plain, copy = tmp_path / "plain.db", tmp_path / "copies" / ENCRYPTED
    copy.parent.mkdir()
    (tmp_path / "key.txt").write_text(f"{key_of_tests()}\n", "utf-8")
    command = [sys.executable, "-c", RUN, "--key-file", str(tmp_path / "key.txt"), "encrypt", str(plain), str(copy)]
    with open_memory(plain) as memory:  # in use, with a log
        planted(memory)
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr.count("encrypted copy") == 1
        told_by_plain = (
            memory.session("s").messages(),
            memory.session("s").search(WORDS[3]),
            memory.facts(user=WORDS[0]),
        )
    with open_memory(copy) as memory:
        session = memory.session("s")
        assert (session.messages(), session.search(WORDS[3]), memory.facts(user=WORDS[0])) == told_by_plain
        assert memory.verify().problems == ()
    assert words_in(copy.parent) == {}
    for source in (plain, copy):
        with pytest.raises(StorageError, match="nothing was copied"):
            encrypt_copy(source, copy, key_of_tests)


def test_a_backup_is_encrypted_too_and_a_damaged_page_is_no_wrong_key(tmp_path: Path) -> None:
    path = tmp_path / ENCRYPTED
    with open_memory(path) as memory:
        memory.session("s").add_messages(conversation(40))
        with store_of(memory).database.read() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql(f"VACUUM INTO '{tmp_path / f'backup.{ENCRYPTED}'}'")
            connection.exec_driver_sql("BEGIN")
    with open_memory(tmp_path / f"backup.{ENCRYPTED}") as backup:
        assert len(backup.session("s").messages()) == 80
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute("SELECT * FROM sqlite_master")
    pages = bytearray(path.read_bytes())
    for at in range(4096 + 100, len(pages), 4096):
        pages[at] ^= 0xFF
    path.write_bytes(pages)
    with pytest.raises(NotOurDatabaseError) as raised:
        open_memory(path).session("s").messages()
    assert not isinstance(raised.value, WrongKeyError | KeyNeededError)
