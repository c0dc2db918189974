"""Which settings matter for results is said once, by each setting."""

from __future__ import annotations

from dataclasses import asdict

from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.effects import essence, essential_values, is_within, presentation

# How a run is shown, where it is kept, and how fast it is.
PRESENTATION = {
    "checkpoint_every",
    "data",
    "device",
    "figures",
    "keep_best_on_test",
    "name",
    "protocol.workers",
    "quiet",
    "rescore_mb",
    "resume",
    "sweep",
    "tracking",
}


def test_the_settings_that_do_not_affect_results() -> None:
    """Whoever adds one says so on purpose: sweeps would take its jobs for computed already."""
    assert presentation() == PRESENTATION


def test_typed_and_flat_configs_lose_the_same_settings() -> None:
    config = compose("train", ["dataset=csl", "threads=2"])

    def flat(values: dict[str, object], prefix: str = "") -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in values.items():
            if isinstance(value, dict):
                found |= flat(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = value
        return found

    everything, kept = flat(asdict(config)), flat(essential_values(config))
    assert essence(everything) == kept
    assert {key for key in everything if is_within(key, PRESENTATION)} == everything.keys() - kept
    assert "protocol.splits" in kept


def test_one_thread_is_what_is_meant_by_none() -> None:
    for threads in ("1", "null"):
        assert essence({"threads": threads, "seed": "0"}) == {"seed": "0"}
    assert essence({"threads": "2", "seed": "0"}) == {"threads": "2", "seed": "0"}


def test_settings_that_no_longer_exist_do_not_count() -> None:
    assert essence({"dataset.kind": "tu", "dataset.name": "MUTAG"}) == {"dataset.name": "MUTAG"}


def test_a_key_is_within_a_group_but_not_within_a_longer_name() -> None:
    assert is_within("data.root", {"data"})
    assert not is_within("dataset.name", {"data"})
