"""Measurements of Freehold, of the raw limit of its database, and of its peers."""
