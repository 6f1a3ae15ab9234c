"""Chains: chat histories, runnables with a history, and the classic memory."""
