"""Chains: chat histories, `RunnableWithMessageHistory`, and the classic memory."""
