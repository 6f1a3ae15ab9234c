"""Texts read and cut, knowing nothing of messages: terms, sentences, identifiers, figures, time expressions."""
