"""Freehold in other frameworks and tools, each imported only where it is used."""
