"""Calibration errors for PyTorch: differentiable losses, measures and metrics.

Every function takes ``(predictions, target)``, in torch's order, computes where the tensors are,
and returns a scalar tensor there. Predictions are probabilities unless ``from_logits=True`` is
said; nothing is guessed or clipped. Install with ``pip install "caldist[torch]"``, or in a checkout
with ``pip install ".[torch]"``.
"""

from typing import TYPE_CHECKING, Any

from caldist._util.optional import how_to_install
from caldist._util.optional import require as _require

try:
    import torch as _torch  # noqa: F401 -- only to say how to install it
except ImportError as error:
    message = f"caldist.torch needs PyTorch: {how_to_install('torch')}."
    raise ImportError(message) from error

from caldist.torch._kernel_loss import kernel_ce_loss
from caldist.torch._measures import binned_ece, brier_score, ece
from caldist.torch._multiclass import multiclass_kernel_ce_loss, multiclass_smooth_ce_loss
from caldist.torch._smooth import smooth_ce_loss

if TYPE_CHECKING:
    from caldist.torch._metric import CalibrationDistance, MulticlassCalibrationDistance

__all__ = [
    "CalibrationDistance",
    "MulticlassCalibrationDistance",
    "binned_ece",
    "brier_score",
    "ece",
    "kernel_ce_loss",
    "multiclass_kernel_ce_loss",
    "multiclass_smooth_ce_loss",
    "smooth_ce_loss",
]


def __getattr__(name: str) -> Any:
    """Load a metric when it is asked for: torchmetrics, its base, is slow to import."""
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    _require("torchmetrics", extra="torch")
    from caldist.torch import _metric

    return getattr(_metric, name)
