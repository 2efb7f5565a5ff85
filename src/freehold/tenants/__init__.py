"""Tenants: their directory, their shards, moves between shards, and the host that serves them."""
