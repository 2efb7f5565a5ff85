"""The worker: claimer -> runner -> finisher, beside a lease renewer and a sweeper."""
