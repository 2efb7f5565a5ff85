"""Keeps the right number of worker processes running: see `manager.py`."""
