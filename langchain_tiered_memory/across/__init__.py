"""What the sessions of one user say together: search, facts that hold for the user, and both in a context."""
