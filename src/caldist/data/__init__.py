"""Samples: rows, checked once, and Joint, the distribution they make."""

import lazy_loader as _lazy_loader

# Loaded when it is used: certificates read files of joints, and need nothing else from here.
__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
