"""How a worker or a service ends: the exit codes that whoever started it reads."""

EXIT_DONE = 0
EXIT_CRASHED = 70
EXIT_RECYCLE = 75  # a handler could not be stopped: start a fresh process
EXIT_KILLED = 75  # of a service: a worker did not end in time
