"""`lpgnn.train`: what `lpgnn train` does, called from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lpgnn_cli.api.graphs import with_stored_graphs
from lpgnn_cli.api.runs import Run
from lpgnn_cli.api.script import importable_by_workers
from lpgnn_cli.api.surroundings import undisturbed
from lpgnn_cli.api.words import flatten, train_words
from lpgnn_cli.commands.train import train as run_train
from lpgnn_cli.config.compose import check_overrides, make_loader
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.credentials import keep_in_words
from lpgnn_cli.errors import RunFailed
from lpgnn_cli.runfolder import INTERRUPTED
from lpgnn_cli.tuning import tune_process


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, once everything is saved: `folder` is where it goes on."""

    def __init__(self, sentence: str, folder: Path) -> None:
        super().__init__(sentence)
        self.folder = folder


def train(*words: str, **settings: Any) -> Run:
    """Train a network and return the run.

    Settings are those of `lpgnn train`: `dataset="mutag"`, `lr={"theta": 1e-3}`, and `words` are
    its words as they are: `"lr.theta=1e-3"`. `dataset` may also be graphs: a PyTorch Geometric
    dataset, a list of its `Data`, or a `GraphBatch`. `resume=run` goes on with an earlier run.

    Raises UserError for a setting that cannot be used, RunFailed for a run that fails, and
    Interrupted on Ctrl-C, after the checkpoints are written.
    """
    with undisturbed(), importable_by_workers():
        given = keep_in_words([*words, *train_words(with_stored_graphs(words, flatten(settings)))])
        config: TrainConfig = check_overrides(make_loader(), "train", given, multirun=False)
        tune_process()
        try:
            folder = run_train(config, given, ["train", *given])
        except RunFailed as error:
            if error.folder is not None and Run(error.folder).state == INTERRUPTED:
                sentence = f"interrupted; go on with lpgnn.train(resume={str(error.folder)!r})."
                raise Interrupted(sentence, error.folder) from None
            raise
    return Run(folder.path)
