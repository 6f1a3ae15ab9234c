import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from typer.testing import CliRunner, Result

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.cli.app import EXAMPLES, app, run
from langchain_tiered_memory.conversations import read_conversations, sample_conversation
from tests.memory_builders import open_memory, quick_settings

pytestmark = pytest.mark.slow

COMMANDS = (
    "replay", "ask", "inspect", "facts", "correct", "rate", "verify", "reindex", "doctor", "export", "import",
    "forget", "status", "setup", "page", "serve", "policy", "encrypt", "rotate-key",
)  # fmt: skip
PARTS = ("pump", "valve", "gauge")
CONTROLS = "\x1b\x07\x9b\N{RIGHT-TO-LEFT OVERRIDE}"
"""What a terminal obeys."""


def called(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def chat(folder: Path, *, messages: int = 60, name: str = "chat") -> Path:
    path = folder / f"{name}.jsonl"
    rows = [
        {
            "id": f"m{number}",
            "role": "assistant" if number % 2 else "user",
            "content": f"Point {number}: the {PARTS[number % 3]} in hall {number % 7} was checked.",
            "timestamp": 1_700_000_000 + 60 * number,
        }
        for number in range(messages)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def database(folder: Path, *, messages: int = 60) -> str:
    path = str(folder / "memory.db")
    assert called("import", path, str(chat(folder, messages=messages)), "--no-embeddings").exit_code == 0
    return path


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a command which cannot be done leaves on standard error, behind what this machine lacks."""
    assert run(list(arguments)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = (one for one in shown.err.splitlines(keepends=True) if not one.startswith("! "))
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    shown = called(command, "--help")
    assert shown.exit_code == 0
    assert "Usage" in shown.output
    assert not re.search(r"<\w|\{|\b(bool|str|int)\b|list\[", shown.output), "Python's types are nothing for a shell"


def test_the_policy_is_printed_in_tokens_of_a_budget_and_as_json() -> None:
    shown = called("policy", "--max-tokens", "4000", "--numbers").stdout
    assert "question" in shown
    assert "1,600" in shown  # facts: 40 % of 4,000
    assert "small_share" in shown
    found = json.loads(called("policy", "--max-tokens", "4000", "--settings", "economy", "--json").stdout)
    rows = {row["section"]: row["tokens"] for row in found["modes"]["files"]["rows"]}
    assert (rows["facts"], rows["recall"]) == (160, 400)
    assert found["numbers"]["small_share"]["unit"] == "of the budget"


@pytest.mark.seldom(2)
def test_replaying_the_sample_needs_nothing_else() -> None:
    shown = called("replay", "--no-embeddings")
    assert shown.exit_code == 0
    assert "seed-library" in shown.output
    assert "the whole history" in shown.output


def test_a_replay_reports_levels_tokens_times_and_the_last_context_as_json(tmp_path: Path) -> None:
    shown = called("replay", str(chat(tmp_path)), "--no-embeddings", "--budget", "600", "--json", "--price-in", "2")
    report = json.loads(shown.stdout)
    assert report["messages"] == 60
    assert report["calls"] == 30
    assert report["largest_context"] <= 600
    assert report["sent_tokens"] < report["full_tokens"]
    assert report["metrics"]["levels"][0]["summaries"] > 0
    assert report["adding"]["count"] == 60
    assert report["last_context"]["messages"][-1]["role"] == "user"


def test_a_replay_into_a_database_can_be_asked_afterwards(tmp_path: Path) -> None:
    db = str(tmp_path / "memory.db")
    assert called("replay", str(chat(tmp_path)), "--db", db, "--no-embeddings", "--session", "s/1").exit_code == 0
    shown = called("ask", db, "s/1", "What about point 17?", "--budget", "300", "--no-embeddings", "--json")
    context = json.loads(shown.stdout)
    assert context["tokens"] <= 300
    assert "m17" in context["entry_ids"]
    shown_whole = called("ask", db, "s/1", "What about point 17?", "--no-embeddings").output
    assert "Point 17" in shown_whole
    assert "zone" not in shown_whole, "nothing was measured: what answers a question is put together anew"


def test_a_session_is_not_replayed_on_top_of_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = failed(capsys, "replay", str(chat(tmp_path)), "--db", database(tmp_path), "--no-embeddings")
    assert "already has a session 'chat'" in error


def test_a_sessions_facts_are_shown_with_who_said_them_and_in_which_messages(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path, settings=quick_settings(messages=2)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The port of the staging server is 8080.", id="q0"), AIMessage("Noted.")])
        session.add_messages([HumanMessage("Correction: the port of the staging server is now 8443.", id="q1")])
        session.add_messages([AIMessage("Noted, [bold]8443[/bold].")], wait=True)
    found = json.loads(called("facts", str(path), "s", "which port?", "--json").stdout)
    assert [one["message_ids"] for one in found] == [["q1"]]
    everything = json.loads(called("facts", str(path), "s", "which port?", "--superseded", "--json").stdout)
    assert {one["status"] for one in everything if one["message_ids"] == ["q0"]} == {"superseded"}
    assert "8443" in called("facts", str(path), "s").stdout


def test_a_database_can_be_inspected_down_to_its_messages(tmp_path: Path) -> None:
    db = database(tmp_path)
    assert [one["session_id"] for one in json.loads(called("inspect", db, "--json").stdout)] == ["chat"]
    cover = json.loads(called("inspect", db, "chat", "--json").stdout)["cover"]
    found = json.loads(called("inspect", db, "chat", cover[0]["id"][:8], "--json").stdout)
    assert found["summary"]["id"] == cover[0]["id"]
    assert found["sources"]
    for arguments in ([], ["chat"], ["chat", cover[0]["id"]]):
        assert called("inspect", db, *arguments).exit_code == 0
    span = f"{cover[0]['first_seq']}-{cover[0]['last_seq']}"
    assert json.loads(called("inspect", db, "chat", span, "--json").stdout) == found, "as contexts name it"
    (message,) = json.loads(called("inspect", db, "chat", "m0", "--json").stdout)["sources"]
    assert message["id"] == "m0"
    head = called("inspect", db, "chat").stdout.splitlines()[0]
    assert 66 < len(head) <= 80, "as wide as a terminal"


def test_what_a_report_advises_is_a_command_and_no_verb_of_a_program(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where, token_counter=lambda text: len(text) + 1) as memory:
        memory.session("s").add_messages([HumanMessage("The crane stands in hall 4.")])
    shown = called("verify", str(where), "--no-embeddings")
    assert "`tiered-memory reindex`" in " ".join(shown.stdout.split())
    assert "()" not in shown.stdout


def test_verify_tells_a_healthy_database_from_a_damaged_one(tmp_path: Path) -> None:
    db = database(tmp_path)
    healthy = called("verify", db, "--no-embeddings", "--json")
    assert (healthy.exit_code, json.loads(healthy.stdout)["problems"]) == (0, [])
    with TieredMemory.open(db, embeddings=None) as memory:
        store = memory.core.runtime.store
        ref = store.transcript.find("chat")
        assert ref is not None
        with store.database.write() as connection:
            connection.exec_driver_sql(
                f"UPDATE ltm_entries SET tokens = 99999 WHERE session_key = {ref.key} AND seq = 1"
            )
    damaged = called("verify", db, "--no-embeddings")
    assert damaged.exit_code == 1
    assert "problem" in damaged.output
    assert called("reindex", db, "--no-embeddings").exit_code == 0
    assert called("verify", db, "--no-embeddings").exit_code == 0


def test_an_export_can_be_imported_and_exported_again_without_a_difference(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    db, other = database(tmp_path), str(tmp_path / "other.db")
    with TieredMemory.open(db, embeddings=None) as memory:
        memory.session("chat").pin("m3")
        memory.session("chat", track="side").add_messages(
            [sample_conversation().turns[0].message], kind="note", task="t"
        )
        memory.session("own", user="ann").add_messages(["hi"])
    assert called("export", db, "--out", str(first)).exit_code == 0
    added = json.loads(called("import", other, str(first), "--no-embeddings", "--json").stdout)
    assert added == {"added": {"chat": 61, "own": 1}, "refused": []}
    with TieredMemory.open(other, embeddings=None) as memory:
        assert memory.sessions(user="ann") == ["own"]
    assert called("export", other, "--out", str(second)).exit_code == 0
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")
    assert len(read_conversations(first)[0].turns) == 61


def test_an_import_can_be_repeated(tmp_path: Path) -> None:
    db = database(tmp_path)
    again = called("import", db, str(tmp_path / "chat.jsonl"), "--no-embeddings", "--json")
    assert json.loads(again.stdout) == {"added": {"chat": 0}, "refused": []}


def test_forgetting_asks_first_and_gives_a_receipt(tmp_path: Path) -> None:
    db = database(tmp_path)
    declined = CliRunner().invoke(app, ["forget", db, "chat"], input="n\n")
    assert declined.exit_code == 1
    receipt = json.loads(called("forget", db, "chat", "-m", "m5", "--yes", "--json").stdout)
    assert receipt["entries"] == 1
    receipt = json.loads(called("forget", db, "chat", "--yes", "--json").stdout)
    assert receipt["entries"] == 59
    assert json.loads(called("inspect", db, "--json").stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [("forget", "x.db"), ("ask", "x.db"), ("replay", "--budget", "0"), ("fly",)],
)
def test_a_mistake_in_the_arguments_is_explained(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(r"[Ss]ee `tiered-memory.* --help`", failed(capsys, *arguments))


def test_every_command_has_an_example_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIERED_MEMORY_MINILM_DIR", str(tmp_path))  # by words alone: it is quicker
    for name in ("key.txt", "new-key.txt"):
        (tmp_path / name).write_text(f"a key for tests in {name}\n", "utf-8")
    chat(tmp_path, name="alice", messages=12)
    assert called("import", "memory.db", "alice.jsonl").exit_code == 0
    (tmp_path / "conversations.json").write_text((tmp_path / "alice.jsonl").read_text(encoding="utf-8"), "utf-8")
    assert set(EXAMPLES) == set(COMMANDS)
    for command, example in EXAMPLES.items():
        assert " ".join(example.split()) in " ".join(called(command, "--help").output.split())
        name, *arguments = shlex.split(example)
        assert (name, arguments[2 if arguments[0] == "--key-file" else 0]) == ("tiered-memory", command)
        if command in ("setup", "replay", "correct", "rate", "serve"):
            continue  # what fetches, plays for minutes or goes on serving has tests of its own
        shown = CliRunner().invoke(app, arguments, input="y\n", catch_exceptions=False)
        assert shown.exit_code == 0, (example, shown.output)


ONE_BY_ONE = """
import json, sys
from langchain_tiered_memory.cli.app import run

for arguments in json.loads(sys.argv[1]):
    try:
        run(arguments)
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
"""
"""Several commands in one process: each imports for seconds what all of them need."""


def test_what_goes_to_a_file_or_a_pipe_has_no_colours_and_no_progress(tmp_path: Path) -> None:
    db = database(tmp_path)
    commands = [["verify", db, "--no-embeddings"], ["inspect", db, "chat"], ["doctor", db, "--no-embeddings"]]
    command = [sys.executable, "-c", ONE_BY_ONE, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "60 messages" in done.stdout
    assert "\x1b" not in done.stdout


def test_what_was_said_controls_no_terminal_and_keeps_its_lines_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"The pump of {CONTROLS} hall 4 was checked, and its valve has to be replaced before the winter comes."
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"id": f"s{CONTROLS}", "messages": [{"role": "user", "content": said}]}]), "utf-8")
    db = str(tmp_path / "memory.db")
    shown = [called("import", db, str(path), "--no-embeddings")]
    with open_memory(db) as memory:
        (entry,) = memory.session(f"s{CONTROLS}").entries()
    shown += [
        called("inspect", db, "s", entry.id),
        called("ask", db, "s", "pump", "--no-embeddings"),
        called("ask", db, "s", "pump", "--no-embeddings", "--view", "default"),
    ]
    assert not set(CONTROLS) & {*"".join(one.output for one in shown)}
    for one in shown[1:]:
        assert "hall 4 was checked, and its valve has to be replaced before the winter comes.\n" in one.stdout
    capsys.readouterr()
    assert not set(CONTROLS) & {*failed(capsys, "inspect", str(tmp_path / f"no{CONTROLS}.db"))}


def test_a_fact_is_corrected_by_the_id_that_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = database(tmp_path, messages=12)
    known = json.loads(called("facts", db, "chat", "hall 3", "--json").stdout)[0]
    assert known["id"][:8] in called("facts", db, "chat", "hall 3").output
    fact = called("correct", db, "chat", known["id"][:8], "The pump in hall 3 is broken.", "--json")
    assert json.loads(fact.stdout)["text"] == "The pump in hall 3 is broken."
    assert known["text"] not in called("facts", db, "chat", "hall 3").output
    assert called("facts", db, "chat", "zeppelin").output == "no fact matches\n"
    assert "the first 1 fact; -k shows more" in called("facts", db, "chat", "-k", "1").output
    capsys.readouterr()
    assert "no fact with the id 'zzz'" in failed(capsys, "correct", db, "chat", "zzz", "No.")


def test_a_summary_is_rated_and_rules_write_theirs_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = database(tmp_path)
    with TieredMemory.open(db, embeddings=None) as memory:
        memory.flush()
        summary = memory.session("chat").tree().summaries[-1]
    span = f"{summary.first_seq}-{summary.last_seq}"
    shown = called("rate", db, "chat", span, "incomplete", "--note", "Hall 3 has a Zieglermann pump.")
    assert "called incomplete" in shown.output
    assert "Zieglermann" in " ".join(shown.output.split())
    assert json.loads(called("rate", db, "chat", summary.id[:8], "good", "--json").stdout)["verdict"] == "good"
    capsys.readouterr()
    assert "no summary" in failed(capsys, "rate", db, "chat", "zzz", "good")


def test_names_may_be_shortened_and_mistakes_are_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = database(tmp_path)
    chat(tmp_path, name="chart", messages=4)
    assert called("import", db, str(tmp_path / "chart.jsonl"), "--no-embeddings").exit_code == 0
    capsys.readouterr()
    assert "60 messages" in called("inspect", db, "chat").output
    assert called("inspect", db, "char").exit_code == 0
    assert "2 sessions begin with 'cha'" in failed(capsys, "inspect", db, "cha")
    assert "did you mean 'chart'?" in failed(capsys, "facts", db, "chrt")
    assert "did you mean 'inspect'?" in failed(capsys, "inspct", db).lower()
    assert "messages of the session 'chat' begin with 'm5'" not in failed(
        capsys, "forget", db, "chat", "-m", "m7x", "-y"
    )
    assert json.loads(called("forget", db, "char", "-m", "m3", "--yes", "--json").stdout)["entries"] == 1


def test_errors_are_one_line_and_exit_code_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db, missing = database(tmp_path), str(tmp_path / "missing.db")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"role": "user", "content": "hi"}\n{"role"\n', encoding="utf-8")
    foreign = tmp_path / "foreign.db"
    foreign.write_text("this is no database at all, but long enough to look at " * 40, encoding="utf-8")
    capsys.readouterr()
    assert "there is no database" in failed(capsys, "verify", missing)
    assert "there is no database" in failed(capsys, "verify", f"sqlite:///{missing}")
    assert not Path(missing).exists()
    assert "`tiered-memory facts` lists them" in failed(capsys, "correct", db, "chat", "zzz", "The pump leaks.")
    assert "it has 'chat'" in failed(capsys, "ask", db, "nobody", "?", "--no-embeddings")
    assert "no summary" in failed(capsys, "inspect", db, "chat", "zzz")
    assert "broken.jsonl:2" in failed(capsys, "replay", str(broken), "--no-embeddings")
    assert "foreign.db" in failed(capsys, "verify", str(foreign), "--no-embeddings")
    assert f"({tmp_path}/nowhere/x.html)" in failed(capsys, "page", db, "chat", "-o", str(tmp_path / "nowhere/x.html"))


@pytest.mark.postgres
def test_no_command_makes_its_tables_in_the_database_of_another_program(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["verify"], ["status"], ["doctor", "--no-embeddings"], ["forget", "--user", "u"]):
        assert "holds no memory yet" in failed(capsys, command[0], postgres_url, *command[1:])
    with open_memory(postgres_url):
        assert called("verify", postgres_url, "--no-embeddings").exit_code == 0


@pytest.mark.parametrize("command", [["tiered-memory"], [sys.executable, "-m", "langchain_tiered_memory"]])
def test_the_command_runs_as_a_process_of_its_own(command: list[str]) -> None:
    if command == ["tiered-memory"]:
        script = Path(sys.executable).with_name("tiered-memory")
        if not script.exists():
            pytest.skip("the package is not installed here, so there is no script")
        command = [str(script)]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tiered-memory ")


def test_help_loads_neither_langchain_nor_a_store() -> None:
    script = (
        "import sys; from langchain_tiered_memory.cli.app import run; run(['replay', '--help']);"
        "heavy = {'langchain_core', 'sqlalchemy', 'chromadb', 'numpy'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


HEARS_CTRL_C = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("langchain_tiered_memory", run_name="__main__", alter_sys=True)
"""
"""The command line, where a shell started the tests in the background too: what it starts so ignores Ctrl-C."""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
def test_ctrl_c_leaves_a_whole_database(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    command = [sys.executable, "-c", HEARS_CTRL_C, "replay", "--db", str(db), "--no-embeddings"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, text=True)
    deadline = time.monotonic() + 240
    while stored(db) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=240)
    assert running.returncode == 130
    assert "stopped" in said
    with TieredMemory.open(db, embeddings=None) as memory:
        memory.flush()
        assert memory.verify().problems == ()
        kept = [message.id for message in memory.session("seed-library").messages()]
    assert len(kept) >= 5
    assert kept == [turn.id for turn in sample_conversation().turns[: len(kept)]]


def stored(db: Path) -> int:
    if not db.is_file():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("select count(*) from ltm_entries").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # no table yet


def test_what_is_not_there_is_said_before_anybody_is_asked_to_forget_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = database(tmp_path)
    assert "no session 'nobody'" in failed(capsys, "forget", db, "nobody")
    assert "no message 'm999'" in failed(capsys, "forget", db, "chat", "--message", "m1", "--message", "m999")
    assert "no session of the user 'somebody'" in failed(capsys, "forget", db, "--user", "somebody")


def test_a_model_without_its_key_or_package_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "set its key" in failed(capsys, "replay", "--model", "openai:gpt-5-mini")
    assert "its provider's package" in failed(capsys, "replay", "--model", "nobody:nothing")


def test_ids_of_36_characters_stand_whole_in_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    thread = "fc22a0bb-07a5-4c77-9dd9-f504bf47537e"
    db = str(tmp_path / "m.db")
    assert called("replay", str(chat(tmp_path)), "--db", db, "--session", thread, "--no-embeddings").exit_code == 0
    shown = called("inspect", db).stdout
    assert thread in shown
    assert all(name in shown for name in ("messages", "tokens", "summaries", "saves"))
    assert max(map(len, shown.splitlines())) <= 80
