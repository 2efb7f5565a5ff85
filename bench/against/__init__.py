"""This tree against another commit: both programs, in alternating pairs, on one server."""
