"""Who writes a summary: a model, or rules that need neither key nor download."""
