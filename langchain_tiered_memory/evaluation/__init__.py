"""Measures how much annotated evidence a context shows within a budget, for a memory and for simple methods."""
