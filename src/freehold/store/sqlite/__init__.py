"""One SQLite file: the embedded store."""
