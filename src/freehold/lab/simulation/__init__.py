"""Simulation from a seed: real workers and clients on virtual time, with faults on every link."""
