"""A schema in PostgreSQL."""
