"""The demo: real worker processes, a mixed load, a worker killed in the middle, and a check."""
