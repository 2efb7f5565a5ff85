"""Compares the records of handlers and clients with the content of the store."""
