"""Files are replaced as a whole, or stay as they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from lpgnn_cli.atomic import replacing, write_atomically
from lpgnn_cli.training.checkpoint import load_checkpoint, save_checkpoint


class CannotBeSaved:
    """Breaks whoever pickles it, after something has been written."""

    def __reduce__(self) -> tuple[object, ...]:
        raise RuntimeError("no")


@pytest.mark.parametrize("content", ["größer\n", b"\x00\xff\r\n"])
def test_text_and_bytes_replace_what_was_there(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_text("a longer text that was there before")
    write_atomically(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_has_the_old_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_what_is_no_file_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="a device or a pipe"):
        write_atomically(pipe, "text")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def break_off() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        break_off()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_that_cannot_be_saved_leaves_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, {"weights": torch.ones(3)})
    with pytest.raises(RuntimeError, match="no"):
        save_checkpoint(path, {"weights": torch.zeros(3), "bad": CannotBeSaved()})
    assert torch.equal(load_checkpoint(path)["weights"], torch.ones(3))
    assert list(path.parent.iterdir()) == [path]
