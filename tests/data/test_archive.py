"""Zips that must not be trusted, and folders and zips that are not the dataset."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data import archive, load_dataset
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.errors import UserError

Write = Callable[..., Path]


def test_members_that_are_not_of_the_dataset_are_never_read(
    write_tu: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tu(zipped=True)
    expected = read_files(path, "TINY").digest()
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("../outside.txt", bytes(10_000_000))
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1_000_000)
    assert read_files(path, "TINY").digest() == expected


def test_a_bomb(write_tu: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 10_000_000)
    path = write_tu(zipped=True, node_attributes=None)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("TINY/TINY_node_attributes.txt", bytes(10_000_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(UserError, match=r"to 10,000,\d+ bytes, more than the 10,000,000"):
        read_files(path, "TINY")


def test_a_bomb_that_lies_about_its_size(write_tu: Write) -> None:
    path = write_tu(zipped=True, A="1, 2\n" * 100_000)
    data = bytearray(path.read_bytes())
    size = len("1, 2\n" * 100_000).to_bytes(4, "little")
    data = data.replace(size, (5).to_bytes(4, "little"))
    path.write_bytes(data)
    with pytest.raises(UserError, match="is not a zip file or is damaged"):
        read_files(path, "TINY")


@pytest.mark.parametrize("content", [b"", b"<html>Sign in to the network</html>", b"PK\x03\x04"])
def test_a_zip_that_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "TINY.zip"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"TINY.zip is not a zip file or is damaged"):
        read_files(path, "TINY")


def test_a_zip_that_was_cut_off(write_tu: Write) -> None:
    path = write_tu(zipped=True)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"TINY.zip is not a zip file or is damaged"):
        read_files(path, "TINY")


def test_a_zip_with_a_flipped_bit(write_tu: Write) -> None:
    path = write_tu(zipped=True)
    path.write_bytes(path.read_bytes().replace(b"6, 7\n", b"6, 6\n", 1))
    with pytest.raises(UserError, match=r"TINY.zip is not a zip file or is damaged"):
        read_files(path, "TINY")


def test_an_encrypted_zip(write_tu: Write) -> None:
    path = write_tu(zipped=True)
    data = path.read_bytes()
    # Bit 0 of the flags says that a member is encrypted.
    data = data.replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00")
    data = data.replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"
    )
    path.write_bytes(data)
    with pytest.raises(UserError, match="is encrypted or packed in a way that cannot be read"):
        read_files(path, "TINY")


def test_files_at_the_top_of_a_zip(write_tu: Write, tmp_path: Path) -> None:
    folder = write_tu()
    with zipfile.ZipFile(tmp_path / "flat.zip", "w") as file:
        for text in folder.iterdir():
            file.write(text, text.name)
    assert read_files(tmp_path / "flat.zip", "TINY").digest() == read_files(folder, "TINY").digest()


def test_another_dataset(write_tu: Write) -> None:
    for zipped in (False, True):
        with pytest.raises(UserError, match=r"the dataset TINY, not BZR: set dataset.name=TINY"):
            read_files(write_tu(zipped=zipped), "BZR")


def test_nothing_there(tmp_path: Path, tiny_config: Callable[..., TuConfig]) -> None:
    with pytest.raises(UserError, match=r"BZR.zip does not exist: give the zip or the folder"):
        load_dataset(tiny_config(tmp_path / "BZR.zip"), None, 0)


@pytest.mark.parametrize("name", ["../MUTAG", "a/b", "", ".hidden", "a b", "a?b=c"])
def test_names_that_would_leave_the_data_folder(
    tmp_path: Path, tiny_config: Callable[..., TuConfig], name: str
) -> None:
    config = tiny_config(tmp_path)
    config.name, config.path = name, None
    with pytest.raises(UserError, match="is not the name of a dataset"):
        load_dataset(config, str(tmp_path), 0)
