"""Across the sessions of one user: search, facts that hold for the user, and both in a context."""
