"""A page is one document in which nothing that was said is markup, and whose policy forbids every request."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from langchain_tiered_memory.pages import page as pages
from langchain_tiered_memory.pages.page import document, embedded, listing, policy
from tests.page_builders import HOSTILE, RIGHT_TO_LEFT

ODD = [HOSTILE, RIGHT_TO_LEFT, "</SCRIPT >", "<!--<script>", "\u2028\u2029", "\ud800", "\0", "]]>"]


class Elements(HTMLParser):
    """The elements of a document with their attributes, and what stands in each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.is_inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.is_inside = tag in ("script", "style")
        if self.is_inside:
            self.inside.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_inside &= tag not in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.inside[-1] += data


def content(said: object = "", session: str = "s") -> dict[str, Any]:
    about = {"session": session, "track": "main", "version": "1"}
    return {"about": about, "metrics": {"messages": 1, "tokens": 2}, "tracks": ["main"], "said": said}


def test_what_was_said_comes_back_as_it_was_and_ends_no_element() -> None:
    text = document(content(ODD, session=HOSTILE))
    elements = Elements(text)
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert not {"img", "svg", "b"} & {tag for tag, _ in elements.found}
    data = next(inside for inside in elements.inside if inside.startswith("{"))
    assert json.loads(data)["said"] == ODD
    text.encode()


def test_embedded_json_has_no_character_that_could_leave_its_block() -> None:
    assert re.search("[<>&\u2028\u2029\ud800-\udfff]", embedded(ODD)) is None
    with pytest.raises(ValueError, match="Out of range"):
        embedded(float("nan"))


@pytest.mark.parametrize("live", [False, True])
def test_the_policy_names_exactly_the_script_and_the_style_that_stand_there(*, live: bool) -> None:
    elements = Elements(document(content(), live=live))
    style, _, script = elements.inside
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]
    told = next(attrs["content"] for tag, attrs in elements.found if attrs.get("http-equiv"))
    assert told == policy(live=live)
    assert re.findall("'sha256-(.+?)'", told or "") == digests
    assert f"connect-src {'self' if live else 'none'!r}" in (told or "")
    assert "unsafe" not in (told or "")


def test_the_list_of_sessions_escapes_their_names() -> None:
    text = listing([{"name": HOSTILE, "address": "page?id=x", "size": "1 message"}], more="")
    assert "script" not in [tag for tag, _ in Elements(text).found]


def test_the_script_knows_no_way_from_a_text_to_markup_and_the_style_asks_for_nothing() -> None:
    sinks = r"(inner|outer|Adjacent)HTML|document\.write|ContextualFragment|\beval\(|new Function|DOMParser|srcdoc"
    assert re.search(sinks, pages.script()) is None
    assert re.search(r"url\(|@import|https?:", pages.style()) is None
    assert set(re.findall(r"https?://[^\"' ]+", pages.script())) == {"http://www.w3.org/2000/svg"}


def test_every_script_of_the_folder_is_in_the_page() -> None:
    there = {one.name for one in files("langchain_tiered_memory.pages").joinpath("assets").iterdir()}
    assert {name for name in there if name.endswith(".js")} == set(pages._SCRIPTS)
