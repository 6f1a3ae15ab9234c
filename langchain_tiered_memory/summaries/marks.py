"""Words of ours at the beginning of a line of a summary, by which it is read back."""

from __future__ import annotations

import re

TOOL_MARK = "[tool]"
"""Stands before what a program or a web page said, at every level: it is a find, not anybody's wish or word."""

STILL_OPEN, SAID = "Still open: ", "Also said: "
TOOL_SAID = f"{TOOL_MARK} also said: "
APPENDED = re.compile(rf"(?:{STILL_OPEN}|{SAID}|{re.escape(TOOL_SAID)})")
"""How a line begins that an audit appended."""
