"""Parts of `operator`: bulk operations, and the checks of its input."""
