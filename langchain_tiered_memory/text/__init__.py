"""Reads and cuts texts, without knowing messages: terms, sentences, identifiers, figures, time expressions."""
