"""Summaries and durable facts: what they hold, how they merge, how they are rendered in a prompt."""
