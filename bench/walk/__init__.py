"""scripts/walk: the functions that one job passes."""
