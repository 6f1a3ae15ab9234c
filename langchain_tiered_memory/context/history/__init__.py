"""What became of past views: outcomes, ledgers, costs, and how one is undone."""
