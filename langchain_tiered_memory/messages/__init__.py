"""Reads, stores and shows LangChain messages: content blocks, the codec, groups of calls and results, file accesses."""
