"""Conversations in files: reads common formats into turns with times, speakers and annotated questions."""

from langchain_tiered_memory.conversations.dates import parse_date
from langchain_tiered_memory.conversations.reading import read_conversation, read_conversations, sample_conversation
from langchain_tiered_memory.conversations.turns import Conversation, ImportReport, Question, Refused, Sitting, Turn

__all__ = [
    "Conversation", "ImportReport", "Question", "Refused", "Sitting", "Turn", "parse_date", "read_conversation",
    "read_conversations", "sample_conversation",
]  # fmt: skip
