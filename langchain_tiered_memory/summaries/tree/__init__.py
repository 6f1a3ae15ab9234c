"""The summary tree: what is due, who makes it, and which summaries cover older messages."""
