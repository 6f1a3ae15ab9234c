"""What a view shows of the past: its plan, its cover, what is left out, and how it is rendered."""
