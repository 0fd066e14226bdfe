"""The front page: few names, and an answer for every other one."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import caldist
from public_names import SUBMODULES, public

MEASURES = (
    "smooth_ce lower_distance upper_distance kernel_ce interval_ce surrogate_interval_ce "
    "random_interval_ce weighted_ce ece binned_ece brier_score log_loss"
)
QUESTIONS = (
    "evaluate distance_bracket certify confidence_interval calibration_test compare gate "
    "evaluate_groups report recalibrate Monitor"
)
DATA_AND_ERRORS = "summarize Joint Accumulator InvalidInput InvalidType show_versions"
NAMES = f"{MEASURES} {QUESTIONS} {DATA_AND_ERRORS}".split()

# Names that the front page had, and those that have other names now, by their submodule.
ELSEWHERE = {
    "certificates": "Certificate JointCertificate",
    "clinical": "CalibrationCurve CalibrationSummary NetBenefit calibration_curve "
    "calibration_summary net_benefit",
    "data": "Grid",
    "errors": "CertificateError ToleranceError",
    "groups": "Group GroupEvaluation",
    "inference": "Comparison Comparisons Gate Interval Region Regions SampleSize TestResult "
    "compare_all guaranteed_width miscalibrated_regions sample_size",
    "measures": "Corp DistanceBounds DistanceBracket Evaluation Evaluations Measure TCal "
    "averaged_two_bin_ce corp debiased_ece ecce_mad ecce_range kernel_smoothed_ece mmce "
    "nearest_calibrated normalized_cross_entropy optimal_partition polynomials "
    "post_processing_gap region soft_binned_ece sweep_ece t_cal true_distance "
    "true_distance_bounds",
    "monitoring": "Step",
    "multiclass": "one_vs_rest top_label",
    "paper": "Evidence KernelDraws Property PropertyError PropertyTable estimate_kernel_ce "
    "kernel_ce_draws properties",
    "recalibration": "CalibrationMap Recalibration evaluate_map",
    "reporting": "Report",
}
MOVED = [(name, module) for module, names in ELSEWHERE.items() for name in names.split()]
RENAMED = {
    "repair": "caldist.recalibrate",
    "Repair": "caldist.recalibration.Recalibration",
    "RepairedClassifier": "caldist.sklearn.RecalibratedClassifier",
    "certify_map": "caldist.recalibration.evaluate_map",
    "interval_width": "caldist.inference.guaranteed_width",
    "PopulationBracket": 'caldist.confidence_interval(…, measure="distance")',
    "weights": "caldist.measures",
    "repairing": "caldist.recalibration",
    "ks_error": "caldist.measures.ecce_mad(y_true, y_prob)",
}


def test_the_front_page_has_these_names_and_no_others():
    assert sorted(caldist.__all__) == sorted(NAMES)
    assert {*dir(caldist)} == {*NAMES, *SUBMODULES, "sklearn", "torch"}
    assert all(hasattr(caldist, name) for name in NAMES)


@pytest.mark.parametrize(("name", "module"), MOVED)
def test_a_name_that_is_elsewhere_is_answered_with_its_address(name, module):
    with pytest.raises(AttributeError, match=f": it is caldist.{module}.{name}$") as refused:
        getattr(caldist, name)
    assert refused.value.name == name
    assert name in getattr(caldist, module).__all__


@pytest.mark.parametrize(("name", "now"), RENAMED.items())
def test_a_name_that_was_renamed_is_answered_with_the_new_one(name, now):
    with pytest.raises(AttributeError) as refused:
        getattr(caldist, name)
    assert now in str(refused.value)


def test_every_public_name_has_one_address():
    """The front page and submodules share what the front page has; nothing else is listed twice."""
    places = {}
    for module in SUBMODULES:
        for name in getattr(caldist, module).__all__:
            if getattr(getattr(caldist, module), name) is not vars(caldist).get(name):
                places.setdefault(name, []).append(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    # The same question about several classes has the same name.
    assert all("multiclass" in found and len(found) == 2 for found in twice.values()), twice


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(AttributeError, match="did you mean 'smooth_ce'"):
        caldist.smoth_ce  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        caldist.nonsense  # noqa: B018


def test_a_star_import_needs_no_extra():
    missing = ["matplotlib", "jinja2", "pandas", "polars", "pyarrow", "duckdb", "torch", "sklearn"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing}))\n"
        "from caldist import *\n"
        "print(smooth_ce([0, 1], [0.2, 0.7]) > 0, report.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True report\n"


def test_type_checkers_read_the_same_names():
    stub = ast.parse(Path(caldist.__file__).with_suffix(".pyi").read_text("utf-8"))
    listed = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in listed for alias in node.names}
    assert all(alias.asname == alias.name for node in listed for alias in node.names)
    assert names == {*dir(caldist)}


def test_every_public_name_has_a_docstring():
    for name, thing in public().items():
        if not isinstance(thing, (dict, tuple, list, str)):
            assert thing.__doc__, name
            assert not thing.__doc__.startswith(f"{name}("), f"{name}: the dataclass's own"
