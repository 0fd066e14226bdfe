"""Proofs of values, and their verifier, which shares no code with the solvers."""
