"""`lpgnn predict`: what trained networks say of graphs or nodes that nobody has classified."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from lpgnn_cli.config.compose import given_keys
from lpgnn_cli.config.dataset import encoded_as
from lpgnn_cli.config.root import PredictConfig
from lpgnn_cli.data.part import Part
from lpgnn_cli.errors import UserError
from lpgnn_cli.reporting.prediction_files import (
    NPZ,
    SCREEN,
    Arrays,
    Rows,
    chosen_format,
    written_arrays,
    written_rows,
)
from lpgnn_cli.reporting.prediction_table import Tally, prediction_table
from lpgnn_cli.screen import plain_console
from lpgnn_cli.tracking.find import find_checkpoints
from lpgnn_cli.training.device import resolve_device
from lpgnn_cli.training.ensemble import Ensemble
from lpgnn_cli.training.scoring import TrainedUnit


def run(config: PredictConfig) -> None:
    """Ask the networks of a run about every graph, and write what they say."""
    if config.dataset is None:
        raise UserError(
            "the graphs are missing: add dataset=graphs dataset.path=FILE.npz, or another dataset."
        )
    form = chosen_format(config.output, config.format)
    device = resolve_device(config.device)
    files = find_checkpoints(config.run, config.checkpoint, config.unit, config.tracking.uri)
    ensemble = Ensemble(
        [TrainedUnit(file, config.inference, device, config.data.memory) for file in files]
    )
    torch.set_num_threads(config.threads or ensemble.config.threads or 1)

    settings = encoded_as(ensemble.config.dataset, config.dataset, given_keys())
    parts = ensemble.load(settings, config.data.root, config.batch_nodes)
    tally = Tally(ensemble.asked.level, ensemble.classes)
    # What is wrong with the first graphs is said before a file is begun.
    part = next(parts, None)
    items = nodes = 0
    with ExitStack() as stack:
        rows, states = _open(stack, config, form)
        while part is not None:
            prediction = ensemble.predict(part.batch)
            columns = prediction.item_columns(ensemble.classes, part.scored, items)
            rows.add(columns)
            if states is not None:
                states.add(prediction.state_columns())
            for arrays in {id(r): r for r in (rows, states) if isinstance(r, Arrays)}.values():
                arrays.add(_bounds(part, nodes))
            tally.add(columns, prediction.inference, part.batch.num_graphs)
            items += len(part.batch.targets)
            nodes += part.batch.num_nodes
            part = next(parts, None)
    if config.output != SCREEN:
        files_written = [config.output]
        files_written += [_states_beside(config.output)] if config.states and form != NPZ else []
        prediction_table(plain_console(), tally, len(ensemble.units), files_written)


def _open(stack: ExitStack, config: PredictConfig, form: str) -> tuple[Rows, Rows | None]:
    """Where the rows of items go, and the states, if they are wanted."""
    if form == NPZ:
        arrays = stack.enter_context(written_arrays(config.output))
        return arrays, arrays if config.states else None
    rows = stack.enter_context(written_rows(config.output, form))
    if not config.states:
        return rows, None
    return rows, stack.enter_context(written_arrays(_states_beside(config.output)))


def _bounds(part: Part, nodes: int) -> dict[str, NDArray[Any]]:
    """The part's share of graph_ptr, after so many nodes."""
    ptr = part.batch.graph_ptr.numpy() + nodes
    return {"graph_ptr": ptr[1:] if nodes else ptr}


def _states_beside(output: str) -> str:
    return str(Path("predictions" if output == SCREEN else output).with_suffix(".states.npz"))
