"""Calibration in sub-groups: a value, an interval and a test for each."""

from caldist.groups.evaluation import Group, GroupEvaluation, evaluate_groups

__all__ = [
    "Group",
    "GroupEvaluation",
    "evaluate_groups",
]
