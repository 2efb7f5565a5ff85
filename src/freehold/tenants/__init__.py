"""Tenants: the directory that knows them, the places where they live, and the way between."""
