"""Makes the pictures of docs/display.md: `python -m tests.display_images`. Needs matplotlib and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from langchain_tiered_memory import Settings, TieredMemory, TreeSettings, plots
from langchain_tiered_memory.conversations import sample_conversation
from langchain_tiered_memory.testing import FrozenClock

IMAGES = Path(__file__).parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin:0;display:flex">
<div style="width:480px;padding:12px;background:#fff;color:#111;color-scheme:light">{card}</div>
<div style="width:480px;padding:12px;background:#14161a;color:#e6e8ec;color-scheme:dark">{card}</div>"""
BUDGET = 2500
MESSAGES = 200


def main() -> None:
    """Tell the sample to a memory, then draw what it shows."""
    settings, clock = Settings(tree=TreeSettings(background=False)), FrozenClock(1_742_000_000)
    with TieredMemory.open(embeddings=None, settings=settings, clock=clock) as memory:
        session = memory.session("seed-library")
        for turn in sample_conversation().turns[:MESSAGES]:
            if turn.speaker == "assistant":
                clock.advance(60)
                session.context(max_tokens=BUDGET)
            session.add_messages([turn.message], at=turn.at)
        session.flush()
        context = session.context("What may the lock for the door cost?", max_tokens=BUDGET)
        plots.composition(session.window_use()).savefig(IMAGES / "composition.png", dpi=80)
        photograph(PAGE.format(card=context._repr_html_()), IMAGES / "context.png")


def photograph(html: str, to: Path) -> None:
    """A page as a picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser: install one of {', '.join(BROWSERS)}")
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as page:
        page.write(html)
        page.flush()
        command = [browser, *QUIET, "--window-size=1008,600", f"--screenshot={to}", f"file://{page.name}"]
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
