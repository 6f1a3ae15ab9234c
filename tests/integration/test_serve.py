"""Pages served live: to this machine alone, for whoever has the token; and what a person does there is done."""

from __future__ import annotations

import hashlib
import html
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest
from langchain_core.messages import HumanMessage

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.cli.app import run
from tests.memory_builders import open_memory
from tests.page_builders import RIGHT_TO_LEFT, SESSION, browser_here, full_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import Session

pytest.importorskip("uvicorn")
from langchain_tiered_memory.pages import server
from langchain_tiered_memory.pages.server import application

pytestmark = [pytest.mark.slow, pytest.mark.service]

TOKEN, PORT = "t0ken", 8765
HERE = f"http://127.0.0.1:{PORT}"
OWN = {"origin": HERE, "content-type": "application/json"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("serve") / "memory.db"
    full_session(where)
    return where


@pytest.fixture
def where(original: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "memory.db"
    copied.write_bytes(original.read_bytes())
    return copied


@contextmanager
def served(where: Path, *, read_only: bool = False) -> Iterator[httpx.AsyncClient]:
    with TieredMemory.open(where, embeddings=None, read_only=True) as memory:
        app = application(memory, None if read_only else partial(open_memory, where), token=TOKEN, port=PORT)
        yield httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"{HERE}/{TOKEN}/")


@contextmanager
def looked_at(where: Path) -> Iterator[Session]:
    with TieredMemory.open(where, embeddings=None, read_only=True) as memory:
        yield memory.session(SESSION)


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        (f"{HERE}/{TOKEN}/", {}, 200),
        (f"http://localhost:{PORT}/{TOKEN}/", {}, 200),
        (f"{HERE}/{TOKEN}/", {"origin": HERE, "sec-fetch-site": "same-origin"}, 200),
        (f"{HERE}/{TOKEN}", {}, 307),
        (f"{HERE}/{TOKEN[:-1]}/", {}, 404),
        (f"{HERE}/", {}, 404),
        (f"{HERE}/tökén/", {}, 404),
        (f"{HERE}/{TOKEN}/", {"host": "attacker.example"}, 421),
        (f"{HERE}/{TOKEN}/", {"host": f"127.0.0.1:{PORT + 1}"}, 421),
        (f"{HERE}/{TOKEN}/", {"origin": "https://attacker.example"}, 403),
        (f"{HERE}/{TOKEN}/", {"origin": "null"}, 403),
        (f"{HERE}/{TOKEN}/", {"sec-fetch-site": "cross-site"}, 403),
        (f"{HERE}/{TOKEN}/", {"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_only_this_machines_own_pages_with_the_token_are_answered(
    original: Path, address: str, headers: dict[str, str], status: int
) -> None:
    with served(original) as client:
        answer = await client.get(address, headers=headers)
    assert answer.status_code == status
    told = answer.headers
    assert (told["cache-control"], told["referrer-policy"]) == ("no-store", "no-referrer")
    assert (told["x-content-type-options"], told["x-frame-options"]) == ("nosniff", "DENY")
    assert not [name for name in told if name.startswith("access-control-")]
    assert (TOKEN in answer.text) is False


async def test_a_page_is_the_sessions_own_and_what_is_not_there_is_said(original: Path) -> None:
    with served(original) as client:
        sessions = await client.get("")
        assert "frame-ancestors 'none'" in sessions.headers["content-security-policy"]
        assert sessions.text.count("page?id=") == 1
        page = await client.get("page", params={"id": SESSION})
        assert page.status_code == 200
        assert "connect-src 'self'" in html.unescape(page.text)
        data = (await client.get("data", params={"id": SESSION, "after": "90"})).json()
        assert data["entries"]["rows"][0][0] == 91
        assert (await client.get("page", params={"id": "nobody"})).status_code == 404
        refused = await client.get("data", params={"id": SESSION, "after": "x"})
        assert "must be a message's number" in refused.json()["error"]


async def test_the_list_says_how_many_sessions_it_leaves_out_and_no_name_reverses_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_LISTED", 2)
    with open_memory(tmp_path / "memory.db") as memory:
        for name in ("first", "second", f"third {RIGHT_TO_LEFT}"):
            memory.session(name).add_messages([HumanMessage("Good morning.")])
    with served(tmp_path / "memory.db") as client:
        told = (await client.get("")).text
    assert "Not listed: 1 older session." in told
    assert "1 message, " in told
    assert ">first<" not in told
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in told


async def test_pins_verdicts_removals_and_undoing_are_done_and_a_removal_gives_its_receipt(where: Path) -> None:
    with served(where) as client:
        act = partial(client.post, "act", headers=OWN)
        with looked_at(where) as session:
            newest = session.outcomes()[0]
            before = session.metrics().messages
            summary = session.tree().summaries[0]
        undone = await act(json={"verb": "undo", "session": SESSION, "outcome": newest.id})
        assert (undone.status_code, "shows something else by now" in undone.text) == (400, True)
        assert (await act(json={"verb": "pin", "session": SESSION, "message": "q1", "track": "main"})).json() == {}
        assert (await act(json={"verb": "unpin", "session": SESSION, "message": "q3", "track": "main"})).json() == {}
        rated = {"verb": "rate", "session": SESSION, "summary": summary.id, "verdict": "wrong", "note": "Not so."}
        assert (await act(json=rated)).json() == {}
        assert (await act(json=rated | {"verdict": "fine"})).status_code == 400
        with looked_at(where) as session:
            now = next(one for one in session.tree().summaries if one.id == summary.id)
            assert (now.verdict, now.verdict_note, now.stale) == ("wrong", "Not so.", False)
            assert now.text.endswith("Not so.")
        receipt = (await act(json={"verb": "forget", "session": SESSION, "message": "q2", "track": "main"})).json()
        assert (receipt["receipt"]["entries"], receipt["receipt"]["may_remain"]) == (1, [])
        with looked_at(where) as session:
            assert [one.id for one in session.entries() if one.pinned] == ["q1"]
            assert session.metrics().messages == before - 1


async def test_the_last_condensation_is_undone(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    full_session(where, unpinned=True)
    with served(where) as client:
        with looked_at(where) as session:
            newest = session.outcomes()[0]
        wanted = {"verb": "undo", "session": SESSION, "outcome": newest.id}
        assert (await client.post("act", headers=OWN, json=wanted)).json() == {}
        with looked_at(where) as session:
            assert session.outcomes()[0].undone_at is not None


def digest_of(where: Path) -> str:
    return hashlib.sha256(where.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, "{}", 403),
        ({"origin": "https://attacker.example", "content-type": "application/json"}, "{}", 403),
        ({**OWN, "sec-fetch-site": "cross-site"}, "{}", 403),
        ({"origin": HERE, "content-type": "text/plain"}, "{}", 415),
        (OWN, "x" * 70_000, 413),
        (OWN, "[", 400),
        (OWN, '{"verb": 1}', 400),
        (OWN, '{"verb": "pin", "session": "nobody", "message": "q1"}', 400),
        (OWN, '{"verb": "drop", "session": "nobody"}', 400),
    ],
)
async def test_what_is_no_request_of_an_own_page_changes_nothing(
    original: Path, headers: dict[str, str], body: str, status: int
) -> None:
    before = digest_of(original)
    with served(original) as client:
        answer = await client.post("act", headers=headers, content=body)
    assert answer.status_code == status
    assert digest_of(original) == before


async def test_pages_for_reading_alone_change_nothing(original: Path) -> None:
    with served(original, read_only=True) as client:
        answer = await client.post("act", headers=OWN, json={"verb": "pin", "session": SESSION, "message": "q1"})
        assert answer.status_code == 403
        assert '"may_change":false' in (await client.get("page", params={"id": SESSION})).text


def test_without_its_extra_the_command_says_what_to_install(
    original: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["serve", str(original)]) == 2
    assert "pip install starlette uvicorn" in capsys.readouterr().err


@contextmanager
def command(where: Path) -> Iterator[str]:
    """The address that a running `serve` printed."""
    started = [sys.executable, "-m", "langchain_tiered_memory", "serve", str(where)]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()


def test_in_a_browser_a_person_follows_pins_and_forgets(where: Path) -> None:
    with browser_here() as browser, command(where) as address:
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda one: wrong.append(one.text) if one.type in ("error", "warning") else None)
        page.goto(address)
        page.get_by_role("link").first.click()
        page.wait_for_selector("#live >> text=Live")
        page.get_by_role("link", name="Messages", exact=True).click()

        with open_memory(where) as memory:
            memory.session(SESSION).add_messages([HumanMessage("The quetzal has landed.")])
        page.wait_for_selector("#live >> text=1 new message")
        page.fill("#query", "quetzal")
        card = page.locator("article")
        assert card.count() == 1

        card.get_by_role("button", name="Pin").click()
        page.wait_for_selector("article .badge >> text=pinned")
        card.get_by_role("button", name="Forget").click()
        assert page.evaluate("document.activeElement.textContent") == "Cancel"
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0
        card.get_by_role("button", name="Forget").click()
        page.get_by_role("button", name="Forget it").click()
        page.wait_for_selector("dialog >> text=Nothing of it remains")
        assert page.evaluate("document.activeElement.textContent") == "Close"
        page.wait_for_selector("#found >> text=0 messages")
        page.keyboard.press("Enter")
        # The button that opened it is gone; a dialog tells that it closed after it did.
        page.wait_for_selector("#main:focus")
        assert wrong == []
    with looked_at(where) as session:
        assert not [one for one in session.entries() if "quetzal" in one.text]
