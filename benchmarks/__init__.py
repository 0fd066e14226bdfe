"""How long the measures take beside ``np.argsort``; run ``python -m benchmarks``."""
