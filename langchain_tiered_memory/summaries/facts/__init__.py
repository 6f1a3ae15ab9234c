"""Durable facts: read from messages, superseded by later ones, chosen for a view and listed there."""

from langchain_tiered_memory.summaries.facts.extraction import extract_facts, shorten

__all__ = ["extract_facts", "shorten"]
