"""Variants: one change applied to a preset, as in `experiment=mutag_single variant=control`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from lpgnn_cli.config.suggest import did_you_mean

# The variant that changes nothing.
UNCHANGED = "none"
# Folders of presets for sweeps, which have as many names as jobs.
NAMELESS = ("grid/", "fair/")


def run_name(preset: str, variant: str) -> str:
    """What a run of a preset under a variant is called; names of folders have no slash."""
    name = preset.replace("/", "_")
    return name if variant == UNCHANGED else f"{name}_{variant}"


def variant_hint(name: str, presets: Iterable[str], variants: Iterable[str]) -> str:
    """What to write for `mutag_single_control`; nothing where the name ends in no variant."""
    known = list(presets)
    for variant in variants:
        preset = name.removesuffix(f"_{variant}")
        if preset == name:
            continue
        if preset in known:
            return f"Write experiment={preset} variant={variant}."
        near = did_you_mean(preset, known)
        return f"Add variant={variant} to a preset instead. {near}".rstrip()
    return ""


def unfit_variant(error: Exception) -> str:
    """A sentence about a variant of what the chosen options do not have; else nothing."""
    variant = re.match(r"In 'variant/(\w+)': ConfigKeyError", str(error))
    key = re.search(r"full_key: (\w+)\.(\S+)", str(error))
    if variant is None or key is None:
        return ""
    return (
        f"variant={variant[1]} sets {key[1]}.{key[2]}, which the chosen {key[1]} does not have: "
        f"choose another {key[1]} or variant={UNCHANGED}."
    )


def _run_name_resolver(*, _root_: DictConfig) -> str | None:
    """`${run_name:}`: after the chosen preset and variant; null where there is no named preset."""
    # A task gets its config without Hydra's part, which is kept aside for it.
    hydra = _root_.hydra if "hydra" in _root_ else HydraConfig.get()
    choices = hydra.runtime.choices
    preset = choices.get("experiment")
    if preset is None or preset.startswith(NAMELESS):
        return None
    return run_name(preset, choices["variant"])


# On import, since a job that comes to another process brings its config and nothing else.
OmegaConf.register_new_resolver("run_name", _run_name_resolver, replace=True)
