"""Sections of a context: the built-in ones by name and share, and those that a user registers."""
