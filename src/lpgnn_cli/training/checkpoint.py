"""Checkpoints: everything a unit needs to go on, or to be scored, in one file of plain tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from lpgnn_cli.atomic import replacing
from lpgnn_cli.errors import UserError

FORMAT = 2


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write atomically: whoever reads, or is killed now, has the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        torch.save({"format": FORMAT, **content}, temporary)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read back what `save_checkpoint` wrote; nothing in the file is executed."""
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist.") from None
    except Exception as error:
        raise UserError(f"{path} is not a checkpoint that can be read: {error}.") from error
    if content.get("format") != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {content.get('format')}; this version reads {FORMAT}."
        )
    return content
