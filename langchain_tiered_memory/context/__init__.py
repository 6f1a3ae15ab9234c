"""Assembles and accounts for the context of one model call."""
