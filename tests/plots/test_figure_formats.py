"""Figures on paper: given axes, small sizes, style sheets, grey print, and PDF, SVG and EPS."""

import io
import logging
import warnings
from itertools import pairwise

import numpy as np
import pytest

import caldist
from caldist.plots import (
    BinnedDisplay,
    ClassReliabilityDisplay,
    ClasswiseDisplay,
    DecisionCurveDisplay,
    DistanceDisplay,
    MapDisplay,
    MonitorDisplay,
    ReliabilityDisplay,
    TopLabelDisplay,
    WitnessDisplay,
    _style,
)

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")
to_hex, to_rgba = plt.matplotlib.colors.to_hex, plt.matplotlib.colors.to_rgba

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P**2).astype(int)
MATRIX = RNG.dirichlet(np.ones(3), 200)
CLASS = (MATRIX.cumsum(axis=1) < RNG.random(200)[:, None]).sum(axis=1)
BINARY = (
    BinnedDisplay, DecisionCurveDisplay, DistanceDisplay, ReliabilityDisplay, WitnessDisplay,
)  # fmt: skip
CLASSES = (ClassReliabilityDisplay, ClasswiseDisplay, TopLabelDisplay)


@pytest.fixture(scope="module")
def monitor():
    found = caldist.Monitor(tolerance=0.02)
    for day in range(4):
        found.update(Y, P, batch=day)
    return found


def figures(monitor, **options):
    """Give the name and the display of every kind, of one model and of two."""
    for kind in BINARY:
        yield kind.__name__, kind.from_predictions(Y, P, **options)
    for kind in CLASSES:
        yield kind.__name__, kind.from_predictions(CLASS, MATRIX, **options)
    yield "MapDisplay", MapDisplay.from_predictions(Y, P, **options)
    if not options:
        yield "MonitorDisplay", MonitorDisplay.from_monitor(monitor)
        for kind in BINARY:
            yield f"{kind.__name__} of two", kind.from_predictions(Y, {"a": P, "b": P**2})


@pytest.fixture(autouse=True)
def _no_figure_left():
    plt.close("all")
    yield
    plt.close("all")


def colours(artist):
    """Give the colours of an artist with their transparency."""
    for name in ("get_facecolor", "get_edgecolor", "get_color"):
        if hasattr(artist, name):
            found = getattr(artist, name)()
            rows = found if np.ndim(found) == 2 else [found]
            yield from (to_rgba(row) for row in rows)


def lightness(colour):
    return float(np.dot(to_rgba(colour)[:3], (0.299, 0.587, 0.114)))


# -- no transparency, which EPS lacks --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_nothing_is_transparent(monitor):
    for name, display in figures(monitor):
        for artist in display.figure_.findobj():
            assert artist.get_alpha() in (None, 1), (name, artist)
            assert {colour[3] for colour in colours(artist)} <= {0.0, 1.0}, (name, artist)
        plt.close(display.figure_)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["eps", "pdf", "svg"])
def test_every_format_is_written_without_a_complaint(monitor, style, caplog):
    for name, display in figures(monitor):
        file = io.BytesIO()
        with caplog.at_level(logging.WARNING, logger="matplotlib"), warnings.catch_warnings():
            warnings.simplefilter("error")
            display.figure_.savefig(file, format=style)
        assert caplog.text == "", name
        assert file.tell() > 1000, name
        plt.close(display.figure_)


def test_the_band_is_in_the_eps_in_its_own_colour():
    display = ReliabilityDisplay.from_predictions(Y, P)
    [band] = [part for part in display.ax_.collections if "band" in part.get_label()]
    shade = band.get_facecolor()[0]
    file = io.BytesIO()
    display.figure_.savefig(file, format="eps")
    numbers = " ".join(f"{part:.3f}" for part in shade[:3])
    assert f"{numbers} setrgbcolor" in file.getvalue().decode("latin-1")
    assert band.get_zorder() < display.lines_[0].get_zorder()


# -- grey ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("display", [ReliabilityDisplay, DecisionCurveDisplay])
def test_shades_are_seen_in_grey_and_lines_on_them(display):
    drawn = display.from_predictions(Y, P)
    shades = [
        part
        for part in (*drawn.ax_.collections, *drawn.ax_.patches)
        if part.get_zorder() <= 1 and part.get_facecolor() is not None
    ]
    assert shades
    for shade in shades:
        light = lightness(next(colours(shade)))
        assert 0.5 < light < 0.96  # apart from paper, and from the line
        assert lightness(drawn.lines_[0].get_color()) < light - 0.3


def test_bands_of_models_that_overlap_have_edges_of_their_own():
    drawn = DecisionCurveDisplay.from_predictions(Y, {"a": P, "b": P**2})
    edges = [line for line in drawn.ax_.lines if line.get_linewidth() == 0.5]
    assert len(edges) == 4
    assert len({str(line._unscaled_dash_pattern) for line in edges}) == 2


def test_a_grey_print_tells_models_apart():
    drawn = ReliabilityDisplay.from_predictions(Y, {"a": P, "b": P**2, "c": np.sqrt(P)})
    assert len({line.get_marker() for line in drawn.lines_}) == 3
    assert len({str(line._unscaled_dash_pattern) for line in drawn.lines_}) == 3


# -- style sheets ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sheet", ["dark_background", "grayscale", "ggplot", "classic"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lines_and_words_are_seen_with_any_style_sheet(monitor, sheet):
    with plt.style.context(sheet):
        for name, display in figures(monitor):
            for ax in display.figure_.axes:
                back = lightness(ax.get_facecolor())
                for line in display.lines_ if len(display.figure_.axes) == 1 else ():
                    assert abs(lightness(line.get_color()) - back) > 0.15, name
                for text in ax.texts:
                    if text.get_text():
                        assert abs(lightness(text.get_color()) - back) > 0.2, (name, text)
            plt.close(display.figure_)


def test_shades_are_mixed_with_the_axes():
    for face in ("white", "black", "#e5e5e5"):
        ax = plt.figure().add_subplot(facecolor=face)
        assert to_hex(_style.tint(ax, _style.DARK, 0.0)) == to_hex(face)
        light = lightness(_style.tint(ax, _style.DARK, 0.16))
        assert 0.05 < abs(light - lightness(face)) < 0.3
    ax = plt.figure().add_subplot(facecolor="none")
    assert to_hex(_style.tint(ax, _style.DARK, 0.0)) == "#ffffff"


# -- sizes and given axes --------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_are_drawn_on_small_axes_without_a_warning(monitor):
    """Two inches: a column of a paper has three of them."""
    kinds = [(kind, (Y, P)) for kind in BINARY] + [(kind, (CLASS, MATRIX)) for kind in CLASSES]
    for kind, data in kinds:
        figure, ax = plt.subplots(figsize=(2.2, 2.6), layout="constrained")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = kind.from_predictions(*data, ax=ax)
            figure.canvas.draw()
        assert drawn.ax_ is ax
        assert figure.axes == [ax]
        box = ax.get_window_extent()
        assert min(box.width, box.height) / figure.dpi > 0.4, kind
        for axis in (ax.xaxis, ax.yaxis):
            boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
            shown = [one for one in boxes if one.width > 0]
            for first, second in pairwise(shown):
                assert not first.overlaps(second), (kind, axis)
        plt.close(figure)


def test_small_axes_have_ticks_at_the_halves():
    for inches, count in ((2.0, 3), (6.0, 5)):
        _, ax = plt.subplots(figsize=(inches, inches))
        ReliabilityDisplay.from_predictions(Y, P, ax=ax)
        assert len(ax.get_xticks()) == count
