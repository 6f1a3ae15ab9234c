"""A Chromium that asks for nothing by itself, for what looks at pages."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def find_chromium() -> str | None:
    """The program of this machine."""
    return next((found for found in map(shutil.which, _NAMES) if found is not None), None)


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """A browser for a while."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of the extra `dev`

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
