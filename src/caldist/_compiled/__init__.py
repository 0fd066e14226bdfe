"""The kernels as compiled at installation; empty where there was no compiler."""
