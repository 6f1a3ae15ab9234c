"""What providers take: a check of a list of messages, and its repair."""
