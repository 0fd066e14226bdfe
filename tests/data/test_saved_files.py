"""Saved joints: what is damaged or foreign is noticed, whoever wrote it; how files are written."""

import dataclasses
import io
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from caldist import Joint
from caldist._util.atomic_files import whole_file, write_atomically
from caldist.data import files

EXACT = Joint.from_arrays([0, 1, 1], [0.2, 0.2, 0.9])
JOINTS = {
    "exact": EXACT,
    "weighted": dataclasses.replace(
        Joint.from_masses([0.25, 0.5], [1.5, 0.5], [0.25, 0.0], radius=0.125),
        invalid={"bad label": 3},
    ),
    "gridded": EXACT.coarsen(4),
    "without squares": Joint.from_cells([3, 7], [2, 0], [1, 1], [5, 0], [7, 9], bits=3),
}
each = pytest.mark.parametrize("joint", JOINTS.values(), ids=JOINTS)


def saved(joint, tmp_path):
    path = tmp_path / "joint.npz"
    joint.save(path)
    return path


def members(path):
    with np.load(path) as archive:
        return dict(archive)


def is_same(one, other):
    """Whether two joints keep the same; == does not look at squares that only one has."""
    mine, others = one._content(), other._content()
    return mine.keys() == others.keys() and all(
        np.array_equal(mine[name], others[name]) for name in mine
    )


def damaged_or_same(path, joint):
    try:
        return is_same(Joint.load(path), joint)
    except ValueError as error:
        return str(path) in str(error)


@pytest.mark.parametrize("name", ["exact", "gridded"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 19])
def test_every_flipped_bit_is_noticed_or_does_no_harm(tmp_path, name, step):
    """In the fast tier, every 19th: bits of every place in a byte."""
    joint = JOINTS[name]
    path = saved(joint, tmp_path)
    content = bytearray(path.read_bytes())
    for number in range(0, 8 * len(content), step):
        at, bit = divmod(number, 8)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        assert damaged_or_same(path, joint), (at, bit)
        content[at] ^= 1 << bit


@each
def test_every_truncation_is_noticed(tmp_path, joint):
    path = saved(joint, tmp_path)
    content = path.read_bytes()
    assert is_same(Joint.load(path), joint)
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"joint\.npz"):
            Joint.load(path)


def large():
    """Return a joint of 1,024 predictions."""
    at = (np.arange(2048) + 0.5) / 2048
    return Joint.from_arrays(np.arange(2048) % 3 == 0, at).coarsen(10)


def test_flipped_bits_in_the_header_of_a_large_array_are_noticed(tmp_path):
    """The length of the header tells where the numbers begin. One that is shorter by two bytes
    shifts them all, and the checksum counts only for who reads to the end."""
    path = saved(large(), tmp_path)
    content = bytearray(path.read_bytes())
    for name, array in members(path).items():
        if array.nbytes < 4096:
            continue
        begin = content.index(b"\x93NUMPY", content.index(f"{name}.npy".encode()))
        for at in range(begin, begin + 10):
            for bit in range(8):
                content[at] ^= 1 << bit
                path.write_bytes(content)
                with pytest.raises(ValueError, match="damaged"):
                    Joint.load(path)
                content[at] ^= 1 << bit


@each
def test_the_format_that_is_written(tmp_path, joint):
    found = members(saved(joint, tmp_path))
    assert found.pop("format") == "caldist-joint-1"
    assert found.keys() <= files.JOINT_ARRAYS


def archive_of(path, arrays, compression=zipfile.ZIP_STORED):
    """Write members one by one: (name, array or bytes)."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays:
            data = io.BytesIO()
            if isinstance(array, bytes):
                data.write(array)
            else:
                np.lib.format.write_array(data, np.asarray(array))
            archive.writestr(name, data.getvalue())


def npy(shape, dtype="<f8", data=b""):
    """Return an array in NumPy's format that says what it likes about itself."""
    head = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, described)
    return head.getvalue() + data


HEAD = [("format.npy", np.str_("caldist-joint-1"))]
BODY = [(f"{name}.npy", values) for name, values in EXACT._content().items()]


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ([*HEAD, *BODY, ("extra.npy", 1.0)], "extra is no array"),
        ([*HEAD, *BODY, ("notes.txt", b"hello")], "notes.txt is no array"),
        ([*HEAD, *BODY, BODY[0]], "is the name of two arrays"),
        ([*HEAD, *BODY, ("mass0", b"")], "is the name of two arrays"),
        ([*HEAD, *BODY[1:], ("prediction", b"")], r"prediction\.npy"),
        ([*HEAD, *BODY[1:]], "prediction"),
        (BODY, "format is 'unknown'"),
        ([("format.npy", 3), *BODY], "format is '3'"),
        (
            [("format.npy", np.str_("caldist-joint-2")), *BODY],
            "its format is 'caldist-joint-2', and this version reads 'caldist-joint-1'",
        ),
        ([*HEAD, *BODY[1:], ("prediction.npy", npy((10**15,)))], "bytes, but has 0"),
        ([*HEAD, *BODY[1:], ("prediction.npy", npy((2,), data=bytes(24)))], "bytes, but has 24"),
        ([*HEAD, *BODY[1:], ("prediction.npy", npy((-2,), data=bytes(16)))], "bytes, but has 16"),
        ([*HEAD, *BODY[1:], ("prediction.npy", npy((2,), "|O"))], "vector of numbers"),
        ([*HEAD, *BODY[1:], ("prediction.npy", npy((10**15,), "<U0"))], "vector of numbers"),
        ([*HEAD, *BODY[1:], ("prediction.npy", np.ones((2, 1)))], "vector of numbers"),
        ([*HEAD, *BODY[1:], ("prediction.npy", np.ones(2, np.complex128))], "vector of numbers"),
        ([*HEAD, *BODY[1:], ("prediction.npy", np.array([0.5, 2.0]))], "prediction"),
        ([*HEAD, *BODY[1:], ("prediction.npy", b"\x93NUMPY\x02\x00")], "version of NumPy"),
        ([*HEAD, *BODY[1:], ("prediction.npy", b"")], "magic string"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_foreign_archive_is_refused(tmp_path, arrays, reason):
    path = tmp_path / "joint.npz"
    archive_of(path, arrays)
    with pytest.raises(ValueError, match=reason) as caught:
        Joint.load(path)
    assert str(path) in str(caught.value)


def test_compressed_members_are_refused_before_they_are_read(tmp_path, monkeypatch):
    """Zeros shrink a thousandfold, so a small file could fill the memory."""
    path = tmp_path / "joint.npz"
    archive_of(path, [*HEAD, ("prediction.npy", np.zeros(10**6))], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match="is compressed, which"):
        Joint.load(path)


def test_a_member_that_claims_to_be_larger_than_the_file_is_not_read(tmp_path, monkeypatch):
    path = saved(EXACT, tmp_path)
    monkeypatch.setattr(
        zipfile.ZipFile, "infolist", lambda self: [*self.filelist, _huge("huge.npy")]
    )
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match="larger than the file"):
        Joint.load(path)


def _huge(name):
    member = zipfile.ZipInfo(name)
    member.file_size = 2**40
    return member


def test_what_is_not_numbers_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="lower is None: only numbers"):
        files.write(tmp_path / "x.npz", {"lower": None})
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_not_called_damage(tmp_path, monkeypatch):
    path = saved(EXACT, tmp_path)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(zipfile.ZipFile, "read", fail)
    with pytest.raises(MemoryError):
        Joint.load(path)


# -- opening ------------------------------------------------------------------------------------


def test_a_folder_is_called_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder, not a saved joint: name a file"):
        Joint.load(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        EXACT.save(tmp_path)


@pytest.mark.parametrize("folder", [True, False])
def test_no_permission_is_called_that(tmp_path, monkeypatch, folder):
    """Windows says the same of folders."""
    path = tmp_path if folder else saved(EXACT, tmp_path)

    def refuse(*_arguments, **_options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    expected = IsADirectoryError if folder else PermissionError
    with pytest.raises(expected) as caught:
        Joint.load(path)
    assert str(path) in str(caught.value)
    assert ("name a file" if folder else "change the permissions") in str(caught.value)


# -- writing ------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def mask():
    """Set the mask of the process for one test."""
    old = os.umask(0)
    yield os.umask
    os.umask(old)


@posix
def test_a_new_file_has_the_permissions_of_new_files(tmp_path, mask):
    for bits, expected in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        mask(bits)
        path = tmp_path / f"{bits}.npz"
        EXACT.save(path)
        assert mode(path) == expected


@posix
def test_a_replaced_file_keeps_its_permissions(tmp_path, mask):
    path = saved(EXACT, tmp_path)
    for permissions in (0o600, 0o660, 0o666):
        path.chmod(permissions)
        mask(0o027)
        seen = []

        def write(file, seen=seen):
            seen.extend(mode(each) for each in tmp_path.iterdir())
            file.write(b"new")

        write_atomically(path, write)
        assert path.read_bytes() == b"new"
        assert mode(path) == permissions
        assert seen == [permissions, permissions]  # never readable by more, not even in between


def test_the_mask_of_the_process_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("changes it for every thread"))
    EXACT.save(tmp_path / "joint.npz")
    EXACT.save(tmp_path / "joint.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["joint.npz"]


@pytest.mark.parametrize("there", [True, False])
def test_a_failed_write_leaves_what_was_there(tmp_path, there):
    path = tmp_path / "file"
    if there:
        path.write_bytes(b"old")
    before = [(each.name, each.read_bytes()) for each in tmp_path.iterdir()]

    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == before

    with (
        pytest.raises(KeyboardInterrupt),
        whole_file(path) as temporary,
        temporary.open("wb") as file,
    ):
        fail(file)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == before


def test_a_file_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    steps, put_in_place = [], Path.replace

    def sync(handle):
        steps.append(("sync", os.fstat(handle).st_size))

    def replace(temporary, path):
        steps.append(("replace", temporary.stat().st_size))
        put_in_place(temporary, path)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
    assert steps == [("sync", 3), ("replace", 3)]
    assert (tmp_path / "file").read_bytes() == b"new"


@posix
def test_a_temporary_file_is_never_somebody_elses(tmp_path, monkeypatch):
    """Who guesses its name, and makes a link of it, would choose the file that is written to."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    planted = tmp_path / f".caldist-{'0' * 16}"
    for plant in (planted.symlink_to, planted.hardlink_to):
        plant(victim)
        with pytest.raises(FileExistsError):
            write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
        assert victim.read_bytes() == b"precious"
        assert not (tmp_path / "file").exists()
        planted.unlink()


@posix
def test_a_file_that_others_write_keeps_its_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with whole_file(path) as temporary:
        temporary.write_bytes(b"new")
        temporary.chmod(0o600)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o640


def test_a_name_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("x" * 251 + ".npz")
    EXACT.save(path)
    assert Joint.load(path) == EXACT
