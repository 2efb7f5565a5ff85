"""The demo: a manager with workers under a mixed load; one worker is killed; then a check."""
