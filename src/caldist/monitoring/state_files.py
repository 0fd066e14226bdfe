"""Monitors as files: sums, names of batches and steps, and nothing that runs."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from caldist.data import validate
from caldist.data.files import JOINT_ARRAYS, open_to_read, read, write
from caldist.data.joint import Joint
from caldist.errors import InvalidInput
from caldist.monitoring import windows
from caldist.monitoring.batch_names import BatchName, check_after, from_plain, kind_of, to_plain
from caldist.monitoring.experts import FAMILIES
from caldist.monitoring.state import Settings, State
from caldist.monitoring.steps import Step, shares_by_name
from caldist.monitoring.streams import N_SUMS, POOLED_BITS, RECENT_BITS, Stream

_FORMAT, _WHAT = "caldist-monitor-1", "a saved monitor"
_SINGLE = ("settings", "batches", "start", "peaks", "scales")
_STREAM = ("total", "windows", "recent")
_NUMBERS = ("pvalue", "log_e_value", "log_e_calibrated", "value", "lower", "upper")
_STEP = ("alarm", *_NUMBERS, "onset", "kind", "n_rows")


class _Names(Collection[str]):
    """The arrays that may be in a file: some once, the others for each stream."""

    _numbered = re.compile(r"(\d+)\.(?:(joint)\.(\w+)|(step)\.(\w+)|(\w+))")

    def __contains__(self, name: object) -> bool:
        if name in _SINGLE:
            return True
        found = self._numbered.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            return False
        _, _, joint, _, step, stream = found.groups()
        return joint in JOINT_ARRAYS or step in _STEP or stream in _STREAM

    def __iter__(self) -> Iterator[str]:
        return iter(_SINGLE)

    def __len__(self) -> int:
        return len(_SINGLE)


class Version(NamedTuple):
    """A file as it was when a monitor was loaded from it or saved to it."""

    path: str
    digest: bytes

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Version:
        """Return the version that is there now."""
        with open_to_read(path, _WHAT) as file:
            return cls(os.path.realpath(path), hashlib.sha256(file.read()).digest())


def save(
    path: str | os.PathLike[str], settings: Settings, state: State, known: Version | None
) -> Version:
    """Write a monitor to a ``.npz`` file, whole or not at all; the caller holds the file's lock.

    Raises
    ------
    FileExistsError
        If the file is the ``known`` one, and has been changed by somebody else since.
    """
    is_known = known is not None and known.path == os.path.realpath(path)
    if is_known and Path(path).exists() and Version.of(path) != known:
        message = (
            f"{os.fspath(path)!r} has changed since this monitor was loaded or saved there: what "
            "another process added would be lost, so nothing was written. Load it again, "
            "update it with the batches after its last one, and save that."
        )
        raise FileExistsError(message)
    position = {name: at for at, name in enumerate(state.batches)}
    content: dict[str, Any] = {
        "settings": _text(vars(settings)),
        "batches": _text(_batches_content(state)),
        "start": state.streams[0].start,
        "peaks": np.array(state.peaks),
        "scales": np.array([stream.scale for stream in state.streams]),
    }
    for number, stream in enumerate(state.streams):
        content[f"{number}.total"] = stream.total
        content[f"{number}.windows"] = stream.windows.ravel()
        content[f"{number}.recent"] = stream.recent
        joint = stream.joint._content()  # noqa: SLF001 -- the same arrays as in its own file
        content |= {f"{number}.joint.{name}": array for name, array in joint.items()}
        steps = [step if number == 0 else step.by[settings.by[number - 1]] for step in state.steps]
        content |= {
            f"{number}.step.{name}": part for name, part in _columns(steps, position).items()
        }
    write(path, content, format_name=_FORMAT)
    return Version.of(path)


def _text(value: Any) -> NDArray[np.uint8]:
    """Return JSON as bytes: an array of text would take four for each letter."""
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)


def _batches_content(state: State) -> dict[str, Any]:
    known = [*state.batches, *([] if state.floor is None else [state.floor])]
    return {
        "kind": kind_of(known[0]) if known else None,
        "floor": None if state.floor is None else to_plain(state.floor),
        "batches": [to_plain(name) for name in state.batches],
    }


def _columns(steps: Sequence[Step], position: Mapping[BatchName, int]) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        name: np.array(
            [math.nan if (x := getattr(step, name)) is None else x for step in steps], np.float64
        )
        for name in _NUMBERS
    }
    columns["alarm"] = np.array([step.alarm for step in steps], bool)
    onsets = [-1 if step.onset is None else position[step.onset] for step in steps]
    columns["onset"] = np.array(onsets, np.int32)
    shares = [[round(100 * step.kind.get(name, 0)) for name in FAMILIES] for step in steps]
    columns["kind"] = np.array(shares, np.uint8).ravel()
    columns["n_rows"] = np.array([step.n_rows for step in steps], np.int64)
    return columns


def load(path: str | os.PathLike[str]) -> tuple[Settings, State]:
    """Read what :func:`save` wrote; a damaged or foreign file is an ``InvalidInput``."""
    content = read(path, format_name=_FORMAT, arrays=_Names(), what=_WHAT)
    try:
        return _state(content)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError) as error:
        reason = f"is not a valid monitor: {str(error).rstrip('.')}"
        raise InvalidInput(argument=repr(os.fspath(path)), reason=reason) from error


def _state(content: dict[str, NDArray[Any]]) -> tuple[Settings, State]:
    from caldist.monitoring.monitor import Monitor  # which checks settings

    given = json.loads(content["settings"].tobytes())
    given["by"] = given["by"] or None
    settings = Monitor(**given)._settings  # noqa: SLF001
    batches, floor = _batches(json.loads(content["batches"].tobytes()))
    count = 1 + len(settings.by)
    start = content["start"].astype(np.int64)
    expected = np.arange(len(batches))
    if not np.array_equal(start, expected[windows.mask(expected, len(batches))]):
        _fail("start", "does not hold the windows that stay after so many batches")
    streams = tuple(
        _stream(content, number, start, len(batches), settings) for number in range(count)
    )
    peaks = _vector(content, "peaks", count)
    parts = [_steps(content, number, batches) for number in range(count)]
    steps = [
        Step(
            **parts[0][at],
            by={name: Step(**parts[1 + k][at]) for k, name in enumerate(settings.by)},
        )
        for at in range(len(batches))
    ]
    known = {f"{number}." for number in range(count)}
    for name in content:
        if name not in _SINGLE and f"{name.partition('.')[0]}." not in known:
            _fail(name, "belongs to no sub-group")
    return settings, State(batches, floor, streams, tuple(peaks.tolist()), steps)


def _fail(array: str, reason: str) -> NoReturn:
    raise InvalidInput(argument=array, reason=reason)


def _batches(content: Mapping[str, Any]) -> tuple[list[BatchName], BatchName | None]:
    batches = [from_plain(value, content["kind"]) for value in content["batches"]]
    for before, after in pairwise(batches):
        check_after(after, before)
    floor = None if content["floor"] is None else from_plain(content["floor"], content["kind"])
    if floor is not None and batches:
        check_after(batches[0], floor, allow_equal=True)
    return batches, floor


def _vector(content: Mapping[str, NDArray[Any]], name: str, size: int) -> NDArray[np.float64]:
    """Return finite numbers of which there must be so many."""
    array = content[name]
    if array.shape != (size,) or array.dtype != np.float64:
        _fail(name, f"should hold {size} numbers")
    if not np.isfinite(array).all():
        validate.fail(name, array, ~np.isfinite(array), "it must be a finite number")
    return array


def _stream(
    content: Mapping[str, NDArray[Any]],
    number: int,
    start: NDArray[np.int64],
    batches: int,
    settings: Settings,
) -> Stream:
    head = f"{number}.joint."
    arrays = {
        name.removeprefix(head): array for name, array in content.items() if name.startswith(head)
    }
    joint = Joint._from_content(arrays)  # noqa: SLF001 -- the same arrays as in its own file
    if joint.grid is None or joint.grid.bits != min(settings.bits, POOLED_BITS):
        _fail(head[:-1], "has another grid than the monitor")
    recent = _vector(content, f"{number}.recent", 2 ** min(settings.bits, RECENT_BITS) + 1)
    if recent.min() < 0:
        validate.fail(f"{number}.recent", recent, recent < 0, "it must not be negative")
    return Stream(
        batches=batches,
        total=_vector(content, f"{number}.total", N_SUMS),
        start=start,
        windows=_vector(content, f"{number}.windows", start.size * N_SUMS).reshape(-1, N_SUMS),
        grid=joint.grid,
        invalid=joint.invalid,
        recent=recent,
        scale=float(_vector(content, "scales", 1 + len(settings.by))[number]),
    )


def _steps(
    content: Mapping[str, NDArray[Any]], number: int, batches: Sequence[BatchName]
) -> list[dict[str, Any]]:
    columns = {name: content[f"{number}.step.{name}"] for name in _STEP}
    columns["kind"] = columns["kind"].reshape(-1, len(FAMILIES))
    if any(len(column) != len(batches) for column in columns.values()):
        _fail(f"{number}.step", "does not have one value for each batch")
    result = []
    for at, batch in enumerate(batches):
        step: dict[str, Any] = {name: columns[name][at].item() for name in _STEP if name != "kind"}
        for name in ("value", "upper"):
            step[name] = None if math.isnan(step[name]) else step[name]
        onset = step["onset"]
        step["onset"] = None if onset < 0 else batches[onset]
        step["kind"] = {} if onset < 0 else shares_by_name(columns["kind"][at].tolist())
        result.append({"batch": batch, **step})
    return result
