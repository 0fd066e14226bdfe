"""Progress bars: what is shown of phases, and when."""

import numpy as np
import pytest

import caldist
from caldist._util import progress


def test_phases_are_named_and_counted(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_DELAY", 0)
    with progress.phases("report", 2, show=True) as begin:
        begin("first")
        assert "0/2" in capsys.readouterr().err
        begin("second")
        shown = capsys.readouterr().err
        assert "1/2" in shown
        assert "second" in shown
    assert "2/2" in capsys.readouterr().err


def test_what_is_quick_or_not_asked_for_shows_nothing(capsys):
    for show in (True, False):
        with progress.phases("report", 2, show=show) as begin:
            begin("first")
            begin("second")
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("models", [1, 2])
def test_a_report_tells_all_of_its_phases(monkeypatch, capsys, models):
    monkeypatch.setattr(progress, "_DELAY", 0)
    p = np.linspace(0.1, 0.9, 60)
    y = np.arange(60) * 7 % 60 < 60 * p
    given = {str(k): p**k for k in range(1, models + 1)}
    caldist.report(y, given, n_resamples=99, progress=True)
    shown = capsys.readouterr().err
    for phase in ("distance", "recalibration", "intervals", "test", "regions", "slope and curve"):
        assert phase in shown
    assert f"{6 * models}/{6 * models}" in shown
