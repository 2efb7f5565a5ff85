"""The runtime: claimer -> runner beside keeper -> finisher, with a sweeper that recovers."""
