"""Durable facts: read from messages, superseded by corrections, kept as rows, chosen and listed for a view."""
