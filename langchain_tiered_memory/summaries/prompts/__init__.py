"""What a condensing model is told: one text per strategy in this folder, shared rules, and the building of a prompt."""

from langchain_tiered_memory.summaries.prompts.building import (
    build_prompt,
    build_repair,
    default_instructions,
    instructions,
)

__all__ = ["build_prompt", "build_repair", "default_instructions", "instructions"]
