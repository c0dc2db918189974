"""How the launchers of others are set for sweeps, unless the user says otherwise.

Their options (`hydra/launcher=joblib`, `ray`) come with their packages, and
Hydra allows no file of the same name, so their settings are given as overrides.
"""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig

SETTINGS: dict[tuple[str, str], dict[str, str]] = {
    ("hydra/launcher", "joblib"): {
        # None dispatched ahead: what has not started can be stopped.
        "hydra.launcher.pre_dispatch": "n_jobs",
        "hydra.launcher.batch_size": "1",
    },
    ("hydra/launcher", "ray"): {
        "hydra.launcher.ray.init.include_dashboard": "false",
        "hydra.launcher.ray.init.log_to_driver": "false",
        "hydra.launcher.ray.remote.num_cpus": "1",
        # The sweep itself decides what is tried again.
        "hydra.launcher.ray.remote.max_retries": "0",
    },
}


def engine_overrides(base: DictConfig, words: Sequence[str]) -> list[str]:
    """Overrides for the engines that were chosen, without those that the user has set."""
    given = {word.lstrip("+").partition("=")[0] for word in words}
    chosen = base.hydra.runtime.choices
    return [
        f"++{key}={value}"
        for (group, option), own in SETTINGS.items()
        if chosen.get(group) == option
        for key, value in own.items()
        if key not in given
    ]
