"""Progress and log lines that handlers write while they run."""
