"""Simulation studies of the intervals and tests: ``python -m studies``."""
