"""Numerical loops, compiled: arrays in, numbers out, no checks.

The files here are plain Python with Cython's type annotations. Installation compiles each of them
into ``caldist._compiled``; ``caldist.kernels.loader`` picks the compiled version where there
is one.
"""
