"""Exit codes of workers and services."""

EXIT_DONE = 0
EXIT_CRASHED = 70
EXIT_RECYCLE = 75  # a handler could not be stopped: start a new process
EXIT_KILLED = 75  # a service killed a worker that did not end in time
