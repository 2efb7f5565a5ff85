"""The demo: a manager and its workers under a mixed load, one of them killed, and a check."""
