"""Whole fleets from a seed: real workers and clients on virtual time, behind lines that fail."""
