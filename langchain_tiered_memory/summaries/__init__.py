"""Summaries and durable facts: their content, how they merge, and how a prompt shows them."""
