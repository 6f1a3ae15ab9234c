"""The database: tables, migrations, connections, rows, and what a driver's errors mean. SQL stands only in stores."""
