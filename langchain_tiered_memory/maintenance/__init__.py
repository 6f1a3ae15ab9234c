"""Checks and repairs what is derived, and does what is due: `verify`, `doctor`, the background worker."""
