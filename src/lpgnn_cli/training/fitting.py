"""What the data of a unit makes of its config: by its features, and by the labels of training."""

from __future__ import annotations

from dataclasses import replace

from lpgnn_cli.config.model import ContractiveConfig, DiffusionConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, Split
from lpgnn_cli.data.alike import Alikeness
from lpgnn_cli.data.scaling import are_words
from lpgnn_cli.metrics import CLASSES


def fitted(config: TrainConfig, dataset: Dataset, split: Split) -> TrainConfig:
    """The config for this split, as `words_dropout` and `alike.when` say."""
    if not config.protocol.of_nodes:
        return config
    if config.words_dropout is not None and are_words(dataset.batch.features):
        config = dropping(config, config.words_dropout)
    travels = isinstance(config.propagation, ContractiveConfig)
    if not travels or not isinstance(config.aggregator, DiffusionConfig):
        return config
    if config.alike.when == "never":
        return config
    if config.alike.when == "auto" and not _seem_alike(dataset, split):
        return config
    return averaging(config)


def _seem_alike(dataset: Dataset, split: Split) -> bool:
    if dataset.batch.task != CLASSES:
        return False
    return not Alikeness.of(dataset.batch, split.train).is_refuted


def dropping(config: TrainConfig, dropout: float) -> TrainConfig:
    return replace(
        config,
        aggregator=replace(config.aggregator, dropout=dropout),
        readout=replace(config.readout, dropout=dropout),
    )


def averaging(config: TrainConfig) -> TrainConfig:
    """x = gain N x + (1 - gain) b(l), where x are the scores: only the way of the labels is learnt.

    Weights on states, and a readout, would be learnt by heart from a few labels. They would also
    act at once, while the states that they read follow ten epochs behind.
    """
    alike, aggregator, propagation = config.alike, config.aggregator, config.propagation
    assert isinstance(aggregator, DiffusionConfig)
    assert isinstance(propagation, ContractiveConfig)
    return replace(
        config,
        aggregator=replace(
            aggregator,
            operator="symmetric",
            self_loops=True,
            own_state=False,
            mixing="identity",
            label_scale=1 - alike.gain,
            output_activation="identity",
        ),
        propagation=replace(propagation, gain=alike.gain),
        readout=replace(
            config.readout,
            learnt=False,
            hidden=[],
            node_hidden=[],
            neighbours=False,
            layers="last",
            label_gate=False,
            norm="none",
            dropout=0.0,
        ),
        lr=replace(config.lr, theta=alike.lr),
        optim=replace(config.optim, weight_decay=alike.weight_decay),
    )
