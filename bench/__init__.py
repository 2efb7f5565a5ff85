"""Measurements of Leasehold, of the raw limit of its database, and of its peers."""
