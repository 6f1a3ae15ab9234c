"""The summary tree: what is due, who makes it, and which summaries cover what is older."""
