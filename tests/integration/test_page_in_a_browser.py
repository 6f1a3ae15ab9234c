"""The page in a real Chromium: clicks, keyboard, search, hostile words, contrast and roles, a phone, many messages."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Self

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.pages.page import content_of, document
from tests.memory_builders import open_memory
from tests.page_builders import BUDGET, HOSTILE, SESSION, browser_here, full_session, multiplied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

SECTIONS = (
    "overview", "messages", "summaries", "facts", "calls", "decisions", "window", "checkpoints", "files", "cost",
)  # fmt: skip
MANY = 3000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browser_here() as found:
        yield found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Context]]:
    folder = tmp_path_factory.mktemp("page")
    got = full_session(folder / "memory.db")
    with TieredMemory.open(folder / "memory.db", embeddings=None, read_only=True) as memory:
        session = memory.session(SESSION)
        contexts = [session.context(max_tokens=BUDGET)]
        (folder / "page.html").write_text(session.page(contexts=contexts), encoding="utf-8")
        many = document(multiplied(content_of(session), MANY))
        (folder / "many.html").write_text(many, encoding="utf-8")
    return folder, got


class Opened:
    """A page that is open, and whatever it did that it should not have done."""

    def __init__(self, browser: Any, file: Path, route: str = "overview", **chosen: Any) -> None:
        self.context = browser.new_context(**chosen)
        self.context.set_default_timeout(240_000)  # a hang's, on a machine that does other things too
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("request", lambda one: self.wrong.append(one.url) if not one.url.startswith("file:") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda one: self.wrong.append(one.text) if one.type in ("error", "warning") else None)
        self.page.on("dialog", lambda one: self.wrong.append(one.message))
        self.page.goto(f"{file.as_uri()}#/{route}")
        self.page.wait_for_selector("html[data-ready]")

    def show(self, route: str) -> None:
        self.page.evaluate("route => { location.hash = `#/${route}`; }", route)
        self.page.wait_for_selector(f"#tabs a[aria-current][href='#/{route.partition('/')[0]}']")

    def numbers(self, within: str) -> list[int]:
        """The numbers of the messages that a part of the page shows."""
        names = self.page.locator(f"{within} article").evaluate_all("all => all.map((one) => one.ariaLabel)")
        return [int(name.split(" ")[1].rstrip(",")) for name in names if name.startswith("Message ")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def open_all(page: Any, *, most: int = 25) -> None:
    """Open everything that can be opened, and what comes to be by that, to a depth that shows each kind once."""
    closed = f"[...document.querySelectorAll('main details:not([open])')].slice(0, {most})"
    for _ in range(4):
        page.evaluate(f"for (const one of {closed}) one.open = true;")
        page.wait_for_timeout(30)


def test_hostile_words_stay_text_everywhere_and_nothing_is_asked_of_any_network(
    browser: Any, written: tuple[Path, dict[int, Context]]
) -> None:
    with Opened(browser, written[0] / "page.html") as opened:
        page = opened.page
        for section in SECTIONS:
            opened.show(section)
            open_all(page)
            strange = "main img, main script, main iframe, main b, main [onload], main [onerror], a[href^='javascript']"
            assert page.locator(strange).count() == 0, section
        opened.show("messages")
        page.fill("#query", "window.hacked=2")
        page.wait_for_selector("article >> text=window.hacked=2")
        shown = page.locator("article.user .said").last.inner_text()
        assert HOSTILE.replace(" <!--", "") in shown
        assert "U+202Egnp.exeU+202C" in shown
        assert page.evaluate("window.hacked") is None
        assert page.inner_text("h1") == SESSION
        assert opened.wrong == []


def test_a_search_tells_how_many_it_found_marks_them_and_can_be_narrowed(
    browser: Any, written: tuple[Path, dict[int, Context]]
) -> None:
    with Opened(browser, written[0] / "page.html", "messages") as opened:
        page = opened.page
        page.fill("#query", "CRÀNE order")
        assert page.inner_text("#found").startswith("8 messages of ")
        assert set(page.locator("article mark").all_inner_texts()) == {"crane", "order"}
        page.get_by_role("combobox", name="From").select_option("user")
        assert page.inner_text("#found").startswith("4 messages of ")
        page.get_by_role("combobox", name="Only").select_option("pinned")
        assert page.inner_text("#found").startswith("0 messages of ")
        assert page.locator("#found").get_attribute("aria-live") == "polite"
        page.get_by_role("spinbutton", name="Go to №").fill("30")
        page.keyboard.press("Enter")
        page.wait_for_selector("article.found[aria-label^='Message 30,']")
        assert page.evaluate("document.activeElement.ariaLabel").startswith("Message 30,")
        page.keyboard.press("PageDown")
        assert page.evaluate("document.activeElement.ariaLabel").startswith("Message 31,")
        assert opened.wrong == []


def test_the_tree_opens_with_the_keyboard_alone_down_to_the_messages(
    browser: Any, written: tuple[Path, dict[int, Context]]
) -> None:
    with Opened(browser, written[0] / "page.html") as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        for _ in range(3):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Summaries"
        page.keyboard.press("Enter")
        page.wait_for_selector("h2:focus >> text=Summaries")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "SUMMARY":
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
                page.keyboard.press("Enter")
                page.wait_for_timeout(20)
            if opened.numbers(".tree"):
                break
        assert opened.numbers(".tree")
        with TieredMemory.open(written[0] / "memory.db", embeddings=None, read_only=True) as memory:
            top = min(
                (one for one in memory.session(SESSION).tree().summaries if one.parent_id is None),
                key=lambda one: one.first_seq,
            )
        assert set(opened.numbers(".tree")) <= set(range(top.first_seq, top.last_seq + 1))
        assert opened.wrong == []


def test_a_summary_is_named_by_what_was_said_and_not_by_a_heading(browser: Any, tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("garden")
        session.add_messages([HumanMessage("花园小屋用橡木。"), AIMessage("好的。")] * 5)
        session.flush()
        session.rate(session.tree().roots[0].id, "wrong", text="## Key points\n- 花园小屋用橡木。")
        (tmp_path / "page.html").write_text(session.page(), encoding="utf-8")
    with Opened(browser, tmp_path / "page.html", "summaries") as opened:
        assert "花园小屋" in opened.page.locator("summary .first").first.inner_text()


def test_a_call_shows_the_messages_that_stood_in_its_context_and_says_of_another_why_it_did_not(
    browser: Any, written: tuple[Path, dict[int, Context]]
) -> None:
    folder, got = written
    with TieredMemory.open(folder / "memory.db", embeddings=None, read_only=True) as memory:
        entries = [one for one in memory.session(SESSION).entries() if one.track == "main"]
    by_id = {one.id: one.seq for one in entries}
    written_by = [one.seq for one in entries if one.role == "assistant"]
    seqs = sorted(got)
    with Opened(browser, folder / "page.html", "messages") as opened:
        page = opened.page
        for seq in (seqs[2], seqs[len(seqs) // 2], seqs[-1]):
            opened.show(f"messages/{seq}")
            page.locator(f"article[aria-label^='Message {seq},']").get_by_role(
                "link", name="What the model saw"
            ).click()
            page.wait_for_selector(f"#call-title >> text=№ {seq}")
            assert page.inner_text("#call-title").startswith(f"Call {written_by.index(seq) + 1} of {len(written_by)}")
            page.locator("summary", has_text="that stood word for word").click()
            page.wait_for_selector(".call article")
            recent = got[seq].section("recent")
            assert recent is not None
            assert opened.numbers(".call") == [by_id[one] for one in recent.entry_ids]
        page.get_by_label("Why, or why not").fill("1")
        page.get_by_role("button", name="Ask").click()
        told = page.inner_text(".answer")
        assert "It was told" in told
        assert any(one[:8] in told for one in got[seqs[-1]].summary_ids)
        page.get_by_label("Why, or why not").fill(str(seqs[-1] + 1))
        page.get_by_role("button", name="Ask").click()
        assert "came after this call" in page.inner_text(".answer")
        page.get_by_role("button", name="Before").click()
        assert f"№ {seqs[-1]}" not in page.inner_text("#call-title")
        assert opened.wrong == []


def test_where_a_plan_is_not_known_any_more_the_page_says_so_and_shows_nothing_in_its_place(
    browser: Any, written: tuple[Path, dict[int, Context]], tmp_path: Path
) -> None:
    folder, got = written
    shutil.copy(folder / "memory.db", tmp_path / "memory.db")
    with open_memory(tmp_path / "memory.db") as memory:
        memory.session(SESSION).forget(message_ids=["q2"])
        (tmp_path / "page.html").write_text(memory.session(SESSION).page(), encoding="utf-8")
    with Opened(browser, tmp_path / "page.html", f"calls/{max(got)}") as opened:
        assert f"№ {max(got)}" in opened.page.inner_text("#call-title")
        assert "its plan is no longer known" in opened.page.inner_text(".call")
        assert opened.page.locator(".call .legend, .call details").count() == 0


@pytest.mark.parametrize(("scheme", "rules"), [("light", {}), ("dark", {"runOnly": ["color-contrast"]})])
@pytest.mark.sweep(1)
def test_roles_names_and_contrast_are_as_axe_wants_them(
    browser: Any, written: tuple[Path, dict[int, Context]], scheme: str, rules: dict[str, Any]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with Opened(browser, written[0] / "page.html", color_scheme=scheme, bypass_csp=True) as opened:
        for section in SECTIONS:
            opened.show(section)
            open_all(opened.page, most=2)
            found = axe.run(opened.page, options={"resultTypes": ["violations"], **rules})
            assert found.violations_count == 0, (section, found.generate_report())


def test_on_a_phone_no_section_is_wider_than_the_screen(browser: Any, written: tuple[Path, dict[int, Context]]) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with Opened(browser, written[0] / "page.html", **phone) as opened:
        for section in SECTIONS:
            opened.show(section)
            open_all(opened.page)
            assert opened.page.evaluate("document.documentElement.scrollWidth") == 360, section


def test_of_many_messages_only_those_near_the_screen_are_there(
    browser: Any, written: tuple[Path, dict[int, Context]]
) -> None:
    with Opened(browser, written[0] / "many.html", "messages") as opened:
        page = opened.page
        assert page.inner_text("#found") == "3,000 messages."
        assert page.locator("article").count() < 200
        page.get_by_role("spinbutton", name="Go to №").fill("2500")
        page.get_by_role("button", name="Go").click()
        page.wait_for_selector("article.found[aria-label^='Message 2500,']")
        card = page.locator("article[aria-label^='Message 2500,']")
        page.wait_for_function(
            """() => {
                const y = document.querySelector("article[aria-label^='Message 2500,']")?.getBoundingClientRect().y;
                return 0 < y && y <= 720;
            }"""
        )
        assert card.get_attribute("aria-setsize") == str(MANY)
        assert page.locator("article").count() < 200
        assert opened.wrong == []
