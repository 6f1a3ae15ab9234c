"""The files of a run in three tiers: rules, contents, the database, the disk."""
