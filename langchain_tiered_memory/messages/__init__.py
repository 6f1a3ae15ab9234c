"""LangChain messages read, stored and shown: content blocks, the codec, groups of calls and results, file accesses."""
