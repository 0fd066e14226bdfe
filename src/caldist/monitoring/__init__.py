"""Watch a model in use: whether it is still calibrated, and if not, since when."""

from caldist.monitoring.monitor import Monitor
from caldist.monitoring.steps import Step, Steps

__all__ = ["Monitor", "Step", "Steps"]
