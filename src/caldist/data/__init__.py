"""Samples: rows, checked once, and Joint, the distribution they make."""
