"""What kept files must do on every database: tiers, contents, forms, damage, forgetting."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from sqlalchemy import select, text, update

from langchain_tiered_memory.errors import DamagedFileError, NotFoundError, PinLimitError
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries
from tests.file_builders import content_of, pack_with_dictionary, places, seen_file, small_rules
from tests.run_builders import ODD, touching
from tests.store_builders import NOW, append, forget_messages, forget_session, session_with

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.files import OpenedFile
    from langchain_tiered_memory.types.records import SessionRef

RULES = small_rules()


def open_kept(
    store: SqlStore, ref: SessionRef, path: str, content: bytes | str | None = None, **options: Any
) -> OpenedFile:
    found = store.kept_files.open(ref, seen_file(path, content), **({"now": NOW, "rules": RULES} | options))
    assert found is not None
    return found


def test_a_file_is_kept_with_what_is_known_of_it_and_comes_back_byte_for_byte(store: SqlStore) -> None:
    ref = session_with(store, 1)
    opened = open_kept(store, ref, ODD + ".py", b"a\x00b\xff\n")
    assert (opened.state, opened.from_tier, opened.file.tier, opened.file.kind) == ("new", None, "hot", "binary")
    kept = store.kept_files.find(ref, ODD + ".py")
    assert kept == opened.file
    assert (kept.size, kept.accesses, kept.accessed_at, kept.pinned) == (5, 1, NOW, False)
    again = open_kept(store, ref, ODD + ".py", b"a\x00b\xff\n", now=NOW + 5)
    assert (again.state, again.from_tier, again.moves, again.file.accesses) == ("unchanged", "hot", (), 2)
    assert content_of(store, ref, ODD + ".py") == b"a\x00b\xff\n"
    assert content_of(store, ref, "other") is None
    assert open_kept(store, ref, "empty", b"").content == b""
    assert content_of(store, ref, "empty") == b""


def test_what_leaves_hot_goes_down_tier_by_tier_and_every_content_is_compressed(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for path in "abcdefgh":
        open_kept(store, ref, path)
    assert places(store, ref) == dict.fromkeys("fgh", "hot") | dict.fromkeys("bcde", "warm") | {"a": "cold"}
    opened = open_kept(store, ref, "a")
    assert (opened.from_tier, opened.state) == ("cold", "unchanged")
    assert [(one.path, one.before, one.after) for one in opened.moves] == [
        ("b", "warm", "cold"),
        ("f", "hot", "warm"),
        ("a", "cold", "hot"),
    ]
    assert all(content_of(store, ref, path) == seen_file(path).content for path in "abcdefgh")
    sizes = store.kept_files.sizes(ref, RULES)
    assert sizes.files == {"hot": 3, "warm": 4, "cold": 1}
    assert sizes.utilisation == 1.0
    assert sizes.compression is not None
    assert sizes.compression > 1


def test_a_large_file_is_compressed_at_a_level_that_takes_a_tenth_of_a_second(store: SqlStore) -> None:
    ref = session_with(store, 1)
    large = "".join(f"{number} requests to /quay/{number * 7919 % 1000}\n" for number in range(60_000)).encode()
    for path, content in (("large.log", large), ("small.log", large[:50_000])):
        open_kept(store, ref, path, content)
        assert content_of(store, ref, path) == content
    with store.database.read() as connection:
        kept = set(connection.scalars(select(file_contents.c.payload)))
    levels = ((9, large), (15, large[:50_000]))
    assert kept == {zstandard.ZstdCompressor(level=level).compress(content) for level, content in levels}


def test_an_unchanged_file_needs_no_content_and_an_unknown_one_does(store: SqlStore) -> None:
    ref = session_with(store, 1)
    open_kept(store, ref, "a", "one")
    bare = seen_file("a", "one")
    without = type(bare)(path="a", kind="text", size=3, modified_ns=None, checksum=bare.checksum, dependencies=("b",))
    opened = store.kept_files.open(ref, without, now=NOW, rules=RULES)
    assert opened is not None
    assert (opened.content, opened.file.dependencies) == (b"one", ("b",))
    other = type(bare)(path="z", kind="text", size=3, modified_ns=None, checksum=bare.checksum)
    assert store.kept_files.open(ref, other, now=NOW, rules=RULES) is None
    assert places(store, ref) == {"a": "hot"}


def test_equal_contents_are_kept_once_and_go_with_the_last_file(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for path in "abcdefgh":
        open_kept(store, ref, path, "the same words " * 50)
    with store.database.read() as connection:
        assert len(connection.execute(select(file_contents)).all()) == 1
    changed = open_kept(store, ref, "h", "other words")
    assert changed.state == "changed"
    assert content_of(store, ref, "a") == b"the same words " * 50
    assert store.kept_files.drop(ref, list("abcdefg")) == 7
    with store.database.read() as connection:
        assert len(connection.execute(select(file_contents)).all()) == 1
    assert content_of(store, ref, "h") == b"other words"


def test_a_pin_holds_and_one_too_many_leaves_everything_as_it_was(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for path in "abc":
        open_kept(store, ref, path, pinned=True)
    before = store.kept_files.files(ref)
    with pytest.raises(PinLimitError):
        open_kept(store, ref, "d", pinned=True)
    assert store.kept_files.files(ref) == before
    assert open_kept(store, ref, "d").file.tier == "warm"
    store.kept_files.change(ref, lambda tiers: policy.clean_up(tiers, RULES), rules=RULES)
    assert places(store, ref) == dict.fromkeys("abcd", "hot") | {"d": "warm"}


def test_what_earlier_releases_packed_with_a_dictionary_is_read_and_goes_with_it(store: SqlStore) -> None:
    ref = session_with(store, 1)
    contents = {
        f"f{n}": f"def function_{n}(argument, other={n}):\n    return module.call(argument, {n * 7919 % 101})\n" * 8
        for n in range(40)
    }
    for path, content in contents.items():
        open_kept(store, ref, path, content)
    pack_with_dictionary(store, ref)
    assert all(content_of(store, ref, path) == content.encode() for path, content in contents.items())
    with store.database.read() as connection:
        taught = len(connection.execute(select(file_dictionaries)).all())
    assert taught == 1
    store.kept_files.drop(ref, list(contents))
    store.kept_files.clear_obsolete(ref)
    with store.database.read() as connection:
        assert connection.execute(select(file_dictionaries)).all() == []
        assert connection.execute(select(file_contents)).all() == []


@pytest.mark.parametrize("tier", ["hot", "warm"])
def test_a_damaged_content_is_an_error_and_leaves_no_trace_of_having_been_opened(store: SqlStore, tier: str) -> None:
    ref = session_with(store, 1)
    for path in "abcd":
        open_kept(store, ref, path)
    path = {"hot": "d", "warm": "a"}[tier]
    kept = store.kept_files.find(ref, path)
    assert kept is not None
    assert kept.tier == tier
    with store.database.write() as connection:
        mine = file_contents.c.checksum == kept.checksum
        connection.execute(update(file_contents).where(mine).values(payload=b"\x28\xb5\x2f\xfdgarbage"))
    bare = seen_file(path)
    without = type(bare)(path=path, kind="text", size=bare.size, modified_ns=None, checksum=bare.checksum)
    before = store.kept_files.files(ref)
    with pytest.raises(DamagedFileError):
        store.kept_files.open(ref, without, now=NOW, rules=RULES)
    assert store.kept_files.files(ref) == before
    assert open_kept(store, ref, path).content == seen_file(path).content
    assert content_of(store, ref, path) == seen_file(path).content


def test_what_a_forgotten_message_touched_is_no_longer_kept_nor_taught(store: SqlStore) -> None:
    ref = append(
        store, "s", touching(("src/a.py", "write"), message_id="m"), touching(("b.py", "read"), message_id="n")
    ).ref
    for number in range(30):
        open_kept(store, ref, f"/p/f{number}.py", f"x = {number}\n" * 40)
    open_kept(store, ref, "/p/src/a.py", "secret = 1\n" * 20)
    open_kept(store, ref, "/p/xsrc/a.py", "public = 1\n" * 20)
    for number in range(9):
        open_kept(store, ref, f"/p/f{number}.py", f"x = {number}\n" * 40)
    pack_with_dictionary(store, ref)
    forget_messages(store, ref, ["m"])
    assert store.kept_files.find(ref, "/p/src/a.py") is None
    assert content_of(store, ref, "/p/xsrc/a.py") == b"public = 1\n" * 20
    assert all(content_of(store, ref, f"/p/f{n}.py") == f"x = {n}\n".encode() * 40 for n in range(30))
    with store.database.read() as connection:
        assert connection.execute(select(file_dictionaries)).all() == []
        assert connection.scalar(text("SELECT count(*) FROM ltm_file_contents WHERE dictionary IS NOT NULL")) == 0


def test_a_session_takes_its_files_along_and_leaves_those_of_others(store: SqlStore) -> None:
    ref, other = session_with(store, 2), session_with(store, 1, "other")
    for one in (ref, other):
        open_kept(store, one, "a", "same")
    assert store.kept_files.find(other, "a") is not None
    forget_session(store, ref)
    assert content_of(store, other, "a") == b"same"
    with pytest.raises(NotFoundError):
        store.kept_files.open(ref, seen_file("b"), now=NOW, rules=RULES)
    forget_messages(store, other, ["m1"])
    with store.database.read() as connection:
        for table in ("ltm_kept_files", "ltm_file_contents", "ltm_file_tiers"):
            assert connection.scalar(text(f"SELECT count(*) FROM {table}")) == 0


def test_times_and_counts_are_kept(store: SqlStore) -> None:
    ref = session_with(store, 1)
    assert store.kept_files.times(ref).figures == {}
    for path in "abcda":
        open_kept(store, ref, path)
    store.kept_files.change(
        ref, lambda tiers: tiers, rules=RULES, times={"collected_at": 7.0}, counts={"collections": 1}
    )
    times = store.kept_files.times(ref)
    assert times.collected_at == 7.0
    assert times.figures == {"opened_new": 4, "opened_warm": 1, "promotions": 5, "demotions": 2, "collections": 1}


def test_threads_that_open_and_pin_at_once_never_pass_a_limit(store: SqlStore) -> None:
    ref = session_with(store, 1)
    wrong: list[object] = []
    done = threading.Event()

    def opens(names: str) -> None:
        try:
            for number in range(30):
                open_kept(store, ref, names[number % len(names)], pinned=number % 11 == 7)
        except PinLimitError:
            pass
        except Exception as error:  # noqa: BLE001 - told below
            wrong.append(error)

    def watches() -> None:
        while not done.is_set():
            sizes = store.kept_files.sizes(ref, RULES)
            if sizes.files["hot"] > 3 or sizes.files["warm"] > 4:
                wrong.append(sizes)

    threads = [threading.Thread(target=opens, args=(names,)) for names in ("abcdefghijk", "kjihgfedcba")]
    watcher = threading.Thread(target=watches)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    watcher.join(60)
    assert wrong == []
    found = places(store, ref)
    assert len(found) == 11
    assert all(content_of(store, ref, path) == seen_file(path).content for path in found)
