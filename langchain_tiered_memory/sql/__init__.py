"""The database: tables, migrations, connections, rows, and the meaning of a driver's errors. Only stores have SQL."""
