"""What a view shows of the past: its plan, its cover, what is barred, and how all of it is rendered."""
