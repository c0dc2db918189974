"""`lpgnn predict`: what trained networks say of graphs or nodes that nobody has classified."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import torch

from lpgnn_cli.config.compose import given_keys
from lpgnn_cli.config.dataset import encoded_as
from lpgnn_cli.config.root import PredictConfig
from lpgnn_cli.data.part import Part
from lpgnn_cli.errors import UserError
from lpgnn_cli.reporting.prediction_files import (
    NPZ,
    SCREEN,
    Rows,
    chosen_format,
    written_arrays,
    written_rows,
)
from lpgnn_cli.reporting.prediction_table import Tally, prediction_table
from lpgnn_cli.screen import plain_console
from lpgnn_cli.tracking.find import find_checkpoints
from lpgnn_cli.training.device import resolve_device
from lpgnn_cli.training.ensemble import Ensemble, pieces
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
    ensemble = Ensemble([TrainedUnit(file, config.inference, device) for file in files])
    torch.set_num_threads(config.threads or ensemble.config.threads or 1)

    settings = encoded_as(ensemble.config.dataset, config.dataset, given_keys())
    dataset = ensemble.load(settings, config.data.root)
    asked = Part(dataset.batch, dataset.scored)
    tally = Tally(ensemble.asked.level, ensemble.classes)
    first = 0
    with ExitStack() as stack:
        rows, states = _open(stack, config, form, asked)
        for part in pieces(asked, config.batch_nodes):
            prediction = ensemble.predict(part.batch)
            columns = prediction.item_columns(ensemble.classes, part.scored, first)
            rows.add(columns)
            if states is not None:
                states.add(prediction.state_columns())
            tally.add(columns, prediction.inference, part.batch.num_graphs)
            first += len(part.batch.targets)
    if config.output != SCREEN:
        files_written = [config.output]
        files_written += [_states_beside(config.output)] if config.states and form != NPZ else []
        prediction_table(plain_console(), tally, len(ensemble.units), files_written)


def _open(
    stack: ExitStack, config: PredictConfig, form: str, asked: Part
) -> tuple[Rows, Rows | None]:
    """Where the rows of items go, and the states, if they are wanted."""
    batch = asked.batch
    whole = {"graph_ptr": batch.graph_ptr.numpy()}
    if form == NPZ:
        lengths = (len(asked.targets), batch.num_nodes)
        rows, states = stack.enter_context(written_arrays(config.output, lengths, whole))
        return rows, states if config.states else None
    rows_of_text = stack.enter_context(written_rows(config.output, form))
    if not config.states:
        return rows_of_text, None
    beside = _states_beside(config.output)
    (states,) = stack.enter_context(written_arrays(beside, (batch.num_nodes,), whole))
    return rows_of_text, states


def _states_beside(output: str) -> str:
    return str(Path("predictions" if output == SCREEN else output).with_suffix(".states.npz"))
