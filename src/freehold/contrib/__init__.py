"""Freehold in other frameworks and tools, each imported only by those who use it."""
