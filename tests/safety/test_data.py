"""Data of somebody else that is absurd: refused at once, in little memory."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.data import archive, catalogue, rows
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.tu import read_tables
from lpgnn_cli.errors import UserError

from .conftest import SMALL, SOBER, one_sentence

FILES = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "0\n1\n",
    "node_labels": "0\n1\n0\n1\n",
    "node_attributes": "0.5, 1\n1, 2\n3, 4\n5, 6\n",
}


def zipped(path: Path, *extra: tuple[str, str | bytes], **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for suffix, text in {**FILES, **files}.items():
            file.writestr(f"TINY/TINY_{suffix}.txt", text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, content in extra:
                file.writestr(name, content)
    return path


def test_a_member_without_a_name_is_damage(tmp_path: Path) -> None:
    path = zipped(tmp_path / "t.zip", ("@", "1\n"))
    path.write_bytes(path.read_bytes().replace(b"@", b"\0"))
    with pytest.raises(UserError, match="is not a zip file or is damaged"):
        read_files(path, "TINY")


def test_members_that_come_twice_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "t.zip", ("other/TINY_A.txt", "1, 1\n"))
    with pytest.raises(UserError, match=r"is refused: it has TINY_A.txt twice\."):
        read_files(path, "TINY")
    path = zipped(tmp_path / "t.zip", ("TINY/TINY_node_labels.txt", "7\n" * 4))
    with pytest.raises(UserError, match=r"it has TINY_node_labels.txt twice\."):
        read_files(path, "TINY")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "t.zip", ("TINY/ä.txt", ""))
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\x8c\x8c"))
    with pytest.raises(UserError, match="is not a zip file or is damaged"):
        read_files(path, "TINY")


MEASURED = """
import resource, sys
from pathlib import Path
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.tu import read_tables
from lpgnn_cli.errors import UserError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_tables(read_files(Path(sys.argv[1]), "TINY"))
except UserError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(("megabytes", "allowed"), [(900, 10), (60, 400)])
def test_a_bomb_costs_little_memory(megabytes: int, allowed: int, tmp_path: Path) -> None:
    """One that is refused by its size alone, and one that is read and found to be wrong."""
    path = zipped(tmp_path / "t.zip")
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("TINY/TINY_edge_labels.txt", "w") as member,
    ):
        for _ in range(megabytes):
            member.write(b"1234567\n" * (1 << 17))
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    sentence, grown = done.stdout.splitlines()
    assert "is refused" in sentence or "but there are 4 arcs" in sentence
    assert int(grown) <= allowed
    assert time.monotonic() - started < 180


@pytest.mark.parametrize("digits", [20, 5_000, 200_000])
@pytest.mark.parametrize("suffix", ["A", "graph_indicator", "graph_labels", "node_labels"])
def test_numbers_of_thousands_of_digits(suffix: str, digits: int, tmp_path: Path) -> None:
    text = FILES[suffix].replace("1", "9" * digits, 1)
    path = zipped(tmp_path / "t.zip", **{suffix: text})
    with pytest.raises(UserError, match=rf"TINY_{suffix}.txt, line [12]: expected"):
        read_tables(read_files(path, "TINY"))


def test_what_is_read_in_pieces_is_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "t.zip", A=FILES["A"].replace("\n", "\r\n"))
    whole = read_tables(read_files(path, "TINY")).to_arrays()
    for size in (1, 2, 3, 7):
        monkeypatch.setattr(rows, "PIECE_BYTES", size)
        pieces = read_tables(read_files(path, "TINY")).to_arrays()
        assert all(np.array_equal(whole[name], pieces[name]) for name in whole)
        broken = zipped(tmp_path / "b.zip", node_attributes="0.5, 1\n1, 2\n3, x\n5, 6\n")
        with pytest.raises(UserError, match=r"line 3: expected 2 numbers, found '3, x'"):
            read_tables(read_files(broken, "TINY"))
        ragged = zipped(tmp_path / "r.zip", node_attributes="0.5, 1\n1, 2\n3\n5, 6\n")
        with pytest.raises(UserError, match="line 3: expected 2 numbers, found '3'"):
            read_tables(read_files(ragged, "TINY"))


def test_a_download_that_is_not_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = read_files(zipped(tmp_path / "t.zip"), "TINY")
    catalogue.check_texts(files)  # a name that nobody has published
    monkeypatch.setitem(catalogue.TEXTS, "TINY", files.digest())
    catalogue.check_texts(files)
    other = read_files(zipped(tmp_path / "o.zip", node_labels="0\n1\n1\n1\n"), "TINY")
    with pytest.raises(UserError, match="is not the published TINY: its texts have another sha256"):
        catalogue.check_texts(other)


@pytest.mark.parametrize(
    "word",
    [
        "protocol.seeds=9223372036854775807",
        "protocol.seeds=100000000000000000000000000000",
        "protocol.workers=99999999999",
        "epochs=99999999999999",
        "layers=100000000",
        "state=[9999999999]",
        "threads=1000000",
        "seed=99999999999999999999",
        "dataset.graphs=999999999",
        "dataset.nodes=999999999",
        "aggregator.hidden=[99999999999]",
        "epochs=1" + "0" * 400,
    ],
)
def test_absurd_counts_are_refused_at_once(
    word: str, capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    words = [w for w in (*SOBER, *SMALL) if w.split("=")[0] != word.split("=")[0]]
    assert main(["train", *words, word]) == 2
    assert one_sentence(capsys.readouterr().err)
    assert not runs.exists()


def test_limits_leave_room_for_what_there_is() -> None:
    """COLLAB, the largest of the collection's usual datasets, has 320 MB of arcs."""
    assert archive.MAX_MEMBER_BYTES > 320 << 20
