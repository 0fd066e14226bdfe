# The front page: what people type daily, and the public submodules, which hold everything else.
# Type checkers read the names here, and the package loads them when they are used.

from . import certificates as certificates
from . import clinical as clinical
from . import data as data
from . import datasets as datasets
from . import engines as engines
from . import errors as errors
from . import groups as groups
from . import inference as inference
from . import measures as measures
from . import monitoring as monitoring
from . import multiclass as multiclass
from . import paper as paper
from . import plots as plots
from . import recalibration as recalibration
from . import reporting as reporting
from . import sklearn as sklearn
from . import torch as torch
from ._versions import show_versions as show_versions
from .data.accumulator import Accumulator as Accumulator
from .data.joint import Joint as Joint
from .engines import summarize as summarize
from .errors import InvalidInput as InvalidInput
from .errors import InvalidType as InvalidType
from .groups import evaluate_groups as evaluate_groups
from .inference import calibration_test as calibration_test
from .inference import compare as compare
from .inference import confidence_interval as confidence_interval
from .inference import gate as gate
from .measures import distance_bracket as distance_bracket
from .measures.binned_ece import binned_ece as binned_ece
from .measures.brier_score import brier_score as brier_score
from .measures.certification import certify as certify
from .measures.ece import ece as ece
from .measures.evaluation import evaluate as evaluate
from .measures.interval_ce import interval_ce as interval_ce
from .measures.kernel_ce import kernel_ce as kernel_ce
from .measures.log_loss import log_loss as log_loss
from .measures.lower_distance import lower_distance as lower_distance
from .measures.random_interval_ce import random_interval_ce as random_interval_ce
from .measures.smooth_ce import smooth_ce as smooth_ce
from .measures.surrogate_interval_ce import surrogate_interval_ce as surrogate_interval_ce
from .measures.upper_distance import upper_distance as upper_distance
from .measures.weighted_ce import weighted_ce as weighted_ce
from .monitoring import Monitor as Monitor
from .recalibration import recalibrate as recalibrate
from .reporting import report as report

__version__: str
