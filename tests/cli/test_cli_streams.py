"""Streams that are closed, full or unread; files that are links; what killed writers leave."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import caldist
from caldist import Joint
from caldist._util.atomic_files import whole_file, write_atomically
from caldist._util.locks import locked
from caldist.recalibration import CalibrationMap
from command_lines import run, sample_rows, write_csv

posix = pytest.mark.skipif(sys.platform == "win32", reason="streams and links of POSIX")
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
EXACT = Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("streams") / "rows.csv", sample_rows())


def shell(file, command, streams):
    """Run a command of caldist with the streams that a shell makes."""
    command = command.replace("ROWS", f"'{file}' --label won --score second")
    text = f'"{sys.executable}" -m caldist {command} {streams}'
    return subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("command", "streams", "code", "said"),
    [
        ("measure ROWS", ">&-", 0, ""),
        ("measure ROWS --fail-above 0.001", ">&- 2>&- <&-", 1, ""),
        ("measure --help", ">&-", 0, ""),
        ("measure -", "<&-", 2, "Error: standard input is empty"),
        ("measure ROWS --fail-above 0.001", "2>&-", 1, ""),
        ("measure ROWS --score none", "2>&-", 2, ""),
        pytest.param("measure ROWS", ">/dev/full", 2, "Error: [Errno 28] No space", marks=full),
        pytest.param("--help", ">/dev/full", 2, "Error: [Errno 28] No space", marks=full),
        pytest.param("nonsense", "2>/dev/full", 2, "", marks=full),
    ],
)
def test_streams_that_are_closed_or_full(file, command, streams, code, said):
    done = shell(file, command, streams)
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == bool(said)  # no traceback


@posix
def test_help_that_nobody_reads_is_no_exceeded_limit():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "caldist", "--help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "Error: [Errno 32] Broken pipe\n")


@pytest.mark.parametrize("kind", ["write_atomically", "whole_file"])
@pytest.mark.parametrize("there", [True, False])
@posix
def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path, kind, there):
    target, link = tmp_path / "data" / "target", tmp_path / "link"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"old")
        target.chmod(0o640)
    link.symlink_to(target)
    if kind == "whole_file":
        with whole_file(link) as path:
            path.write_bytes(b"new")
    else:
        write_atomically(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    if there:
        assert target.stat().st_mode & 0o777 == 0o640


@posix
def test_everything_that_is_saved_is_saved_through_links(tmp_path):
    (tmp_path / "data").mkdir()
    monitor = caldist.Monitor()
    monitor.update([0, 1], [0.2, 0.7], batch=1)
    for name, saved in {
        "joint.npz": EXACT,
        "map.json": CalibrationMap([0.0, 1.0], [0.25, 0.75]),
        "monitor.npz": monitor,
        "proof.npz": caldist.certify([0, 1], [0.25, 0.75]),
    }.items():
        link, target = tmp_path / name, tmp_path / "data" / name
        link.symlink_to(target)
        saved.save(link)
        assert link.is_symlink()
        assert target.is_file()


@posix
def test_a_link_to_itself_is_refused(tmp_path):
    link = tmp_path / "joint.npz"
    link.symlink_to(link)
    with pytest.raises(OSError, match="is a link to itself"):
        EXACT.save(link)


@posix
def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(OSError, match="is a device or a pipe"):
        EXACT.save(tmp_path / "pipe.npz")


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path):
    names = {
        "old": tmp_path / ".caldist-0123456789abcdef",
        "new": tmp_path / ".caldist-fedcba9876543210",
        "other": tmp_path / ".caldist-notes",
    }
    for path in names.values():
        path.write_bytes(b"half")
    before = time.time() - 25 * 3600
    for name in ("old", "other"):
        os.utime(names[name], (before, before))
    EXACT.save(tmp_path / "joint.npz")
    assert {path.name for path in tmp_path.iterdir()} == {
        "joint.npz",
        ".caldist-fedcba9876543210",
        ".caldist-notes",
    }


@posix
def test_links_to_one_state_have_one_lock(tmp_path):
    (tmp_path / "data").mkdir()
    state, link = tmp_path / "data" / "state.npz", tmp_path / "state.npz"
    link.symlink_to(state)
    with locked(state), pytest.raises(BlockingIOError), locked(link):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("length", [240, 243, 247, 251])
def test_names_as_long_as_names_can_be(tmp_path, length):
    pytest.importorskip("duckdb")
    name = "x" * length
    rows = ("--label", "won", "--score", "second")
    file = write_csv(tmp_path / "rows.csv", sample_rows() | {"day": ["2026-01-01"] * 200})
    for command in (
        ("summarize", file, *rows, "-o", tmp_path / f"{name}.npz"),
        ("monitor", file, *rows, "--date", "day", "--state", tmp_path / f"s{name[1:]}.npz"),
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
    CalibrationMap([0.0, 1.0], [0.25, 0.75]).save(tmp_path / "map.json")
    out = tmp_path / f"{name}.csv"
    result = run(
        "apply", tmp_path / "map.json", file, "--score", "first", "--column", "q", "-o", out
    )
    assert result.exit_code == 0, result.output
    assert out.is_file()
