"""The writers of summaries: a chat model, or rules that choose sentences from the sources."""
