"""Keeps the right number of worker processes alive: see `manager.py`."""
