"""What a condensing model is told: one text per strategy in this folder, shared rules, and the building of a prompt."""
