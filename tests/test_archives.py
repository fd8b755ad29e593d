"""Archives: sizes are not believed, only what is asked for is unpacked, and that once."""

import gzip
import io
import tarfile
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

import pliant
from pliant import FileError
from pliant.app.inspection import inspect
from pliant.io import archive, convertible_kind
from pliant.io.archive import members_of

OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def tar_header(name, size, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse_tar(real):
    """A GNU sparse member of no data that claims `real` bytes."""
    block = bytearray(tar_header("hole.obj", 0, tarfile.GNUTYPE_SPARSE))
    block[483:495] = b"%011o " % real
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block).ljust(2048, b"\0")


def pax_sparse_tar(real):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as t:
        info = tarfile.TarInfo("hole.obj")
        info.pax_headers = {"GNU.sparse.size": str(real), "GNU.sparse.map": "0,0"}
        t.addfile(info)
    return stream.getvalue()


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in members.items():
            z.writestr(name, data)
    return stream.getvalue()


def gzipped_tar(*headers, zeros):
    return gzip.compress(b"".join(headers) + bytes(zeros), 6)


ZEROS = 100 << 20
BOMBS = {
    "sparse.tar": lambda: sparse_tar(3 << 30),
    "pax-sparse.tar": lambda: pax_sparse_tar(3 << 30),
    "claim.tar": lambda: tar_header("a.obj", 1 << 50),
    "modest-claim.tar": lambda: tar_header("a.obj", 1 << 26),
    "hidden-claim.tar": lambda: tar_header(".a", 1 << 40) + tar_header("a.obj", 3),
    "member.zip": lambda: zipped({"a.obj": bytes(ZEROS)}),
    "member.tar.gz": lambda: gzipped_tar(tar_header("a.obj", ZEROS), zeros=ZEROS + 2048),
    "skipped.tar.gz": lambda: gzipped_tar(tar_header(".a", ZEROS), zeros=ZEROS + 2048),
    "long-name.tar.gz": lambda: gzipped_tar(tar_header("n", ZEROS, tarfile.GNUTYPE_LONGNAME), zeros=ZEROS),
    "pax-header.tar.gz": lambda: gzipped_tar(tar_header("n", ZEROS, tarfile.XHDTYPE), zeros=ZEROS),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "pax-header.tar.gz")) for name in BOMBS]
)
def test_bombs_are_refused_soon_and_without_their_bytes(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    begun = time.process_time()
    with pytest.raises(FileError, match=r"the limit is|sparse|is not a whole archive|cut off") as caught:
        pliant.read_mesh(path)
    assert time.process_time() - begun < 1
    assert "\n" not in str(caught.value)
    tracemalloc.start()
    with pytest.raises(FileError):
        pliant.read_mesh(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * archive.ALWAYS_ALLOWED  # what came before the limit, and once more while it is joined


def test_what_compresses_well_but_credibly_reads(tmp_path):
    text = OBJ + b"# a comment that repeats\n" * 400_000  # 10 MB from less than 0.1 MB
    (tmp_path / "a.zip").write_bytes(zipped({"a.obj": text}))
    assert (tmp_path / "a.zip").stat().st_size * 100 < len(text)
    assert len(pliant.read_mesh(tmp_path / "a.zip").points) == 3


def test_only_what_is_asked_for_is_unpacked(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped({"a.obj": OBJ, "film.mp4": bytes(ZEROS)}))
    assert len(pliant.read_mesh(tmp_path / "a.zip").points) == 3


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_an_archive_is_unpacked_once_for_all_that_is_asked_of_it(tmp_path, monkeypatch, name):
    path = tmp_path / name
    if name == "a.zip":
        path.write_bytes(zipped({"a.obj": OBJ}))
    else:
        path.write_bytes(tar_header("a.obj", len(OBJ)) + OBJ.ljust(512, b"\0") + bytes(1024))
    opened = []

    def counted(real):
        return lambda *arguments, **options: opened.append(arguments) or real(*arguments, **options)

    monkeypatch.setattr(zipfile, "ZipFile", counted(zipfile.ZipFile))
    monkeypatch.setattr(tarfile, "open", counted(tarfile.open))
    inspect(path)
    assert convertible_kind(path, "a.ply") == "mesh"
    pliant.read(path)
    assert len(opened) == 1


def test_a_changed_archive_is_read_again(tmp_path):
    path = tmp_path / "a.zip"
    for scale in (1, 2):
        path.write_bytes(zipped({"a.obj": OBJ.replace(b"1 0 0", b"%d 0 0" % scale)}))
        assert pliant.read_mesh(path).points.max() == scale
        path.unlink()


def test_a_large_archive_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "CACHE_LIMIT", 10)
    (tmp_path / "a.zip").write_bytes(zipped({"a.obj": OBJ}))
    (tmp_path / "a.tar").write_bytes(tar_header("a.obj", len(OBJ)) + OBJ.ljust(512, b"\0") + bytes(1024))
    for name in ("a.zip", "a.tar"):
        assert members_of(tmp_path / name)["a.obj"] == OBJ
        assert not archive._last


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_a_damaged_archive_gives_one_line(tmp_path, suffix):
    whole = tmp_path / f"whole.{suffix}"
    if suffix == "zip":
        whole.write_bytes(zipped({"a.obj": OBJ * 100}))
    else:
        with tarfile.open(whole, f"w:{suffix[4:]}") as t:
            info = tarfile.TarInfo("a.obj")
            info.size = len(OBJ)
            t.addfile(info, io.BytesIO(OBJ))
    data = np.frombuffer(whole.read_bytes(), np.uint8)
    rng = np.random.default_rng(4)
    broken = tmp_path / f"broken.{suffix}"
    refusals = []
    for _ in range(80):
        changed = data.copy()
        changed[rng.integers(0, min(len(data), 700), 3)] = rng.integers(0, 256, 3)
        broken.write_bytes(changed[: rng.integers(1, len(data) + 1)].tobytes())
        try:
            pliant.read_mesh(broken)
        except FileError as error:
            refusals.append(str(error))
    assert len(refusals) > 40
    assert not any("\n" in line for line in refusals)
