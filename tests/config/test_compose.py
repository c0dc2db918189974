"""From overrides to a typed config, and the sentences that answer mistakes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from lpgnn_cli.commands import COMMANDS
from lpgnn_cli.config import model
from lpgnn_cli.config.compose import (
    check_overrides,
    compose,
    conf_dir,
    load,
    make_loader,
    without_hydra,
)
from lpgnn_cli.errors import UserError
from lpgnn_cli.training.schedule import selecting

LOADER = make_loader()


def test_the_typed_default_has_every_value_of_the_files() -> None:
    composed = without_hydra(load(LOADER, "train", []))
    assert dataclasses.asdict(compose("train")) == OmegaConf.to_container(composed, resolve=True)


def test_overrides_reach_the_typed_config() -> None:
    config = compose(
        "train", ["g=abs_eps", "g.eps=0.5", "layers=2", "state=[8,2]", "lr.theta=1e-3"]
    )
    assert isinstance(config.g, model.InsensitiveConstraintConfig)
    assert (config.g.eps, config.layers, config.state, config.lr.theta) == (0.5, 2, [8, 2], 0.001)


def test_a_dataset_brings_its_protocol_and_the_command_line_wins() -> None:
    assert compose("train", ["dataset=karate"]).protocol.name == "transductive"
    assert compose("train", ["dataset=clique"]).protocol.name == "holdout"
    assert compose("train", ["dataset=clique", "protocol=kfold"]).protocol.name == "kfold"


@pytest.mark.parametrize("command", [n for n, c in COMMANDS.items() if c.kind == "hydra"])
def test_hydra_makes_no_folder_and_no_log_for_a_single_run(command: str) -> None:
    config = load(LOADER, command, [])  # conf/_hydra.yaml, named in the command's defaults list
    assert (config.hydra.run.dir, config.hydra.output_subdir) == (".", None)
    assert config.hydra.job_logging.root is None
    assert "runs" in config.hydra.sweep.dir


def test_conf_is_where_the_package_says() -> None:
    assert (conf_dir() / "train.yaml").is_file()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ("theta=1", "there is no setting theta. Did you mean lr.theta?"),
        ("+foo=1", "there is no setting foo. `--help` lists all settings."),
        ("++lr.thet=1", "there is no setting lr.thet. Did you mean lr.theta"),
        ("+seed=2", "seed exists already: write seed=<value>, without the +."),
        ("zzz=1", "there is no setting zzz. `--help` lists all settings."),
        ("state=8", "state must be a list, such as state=[16]."),
        ("state=[a]", "state[0] must be a whole number, not a."),
        ("epochs=1.5", "epochs must be a whole number, not 1.5."),
        ("lr.theta=fast", "lr.theta must be a number, not fast."),
        ("quiet=maybe", "quiet must be true or false"),
        ("seed=null", "seed cannot be null."),
        ("lr=3", "lr is not a single setting"),
        ("layers=1,2", "layers=1,2 has several values: add -m to run each of them"),
        ("experiment=nope", "experiment has no option nope."),
        ("recipe=lagrangian/karte", "recipe has no option lagrangian/karte. Did you mean"),
        ("recipe=null", "recipe cannot be null: write recipe=none."),
        ("recipe=lagrangian/cora", "recipe=lagrangian/cora depends on the choice of g"),
        ("g=null", "g cannot be null: choose abs, abs_eps"),
        ("dataset=_tu", "dataset has no option _tu. Did you mean tu?"),
        ("dataset=tu", "dataset.name has no value yet: add dataset.name=..."),
        ("~seed", "seed has no value: add seed=..."),
        ("=3", "=3 has no key"),
        ("layers", "layers cannot be read as a setting"),
        ("layers=${nope}", "layers: Interpolation key 'nope' not found"),
        ("readout.pool=summ", "readout.pool must be one of sum, mean, not summ. Did you mean sum?"),
        ("lr.theta=inf", "lr.theta must be a finite number, not inf."),
        ("hydra.nope=1", "hydra.nope: Key 'nope' not in 'HydraConf'"),
    ],
)
def test_a_mistake_becomes_one_sentence(overrides: str, sentence: str) -> None:
    with pytest.raises(UserError) as raised:
        compose("train", [overrides])
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "multirun"), [(["g=abs_eps"], False), (["g=lin,squared"], True), (["g=abs"], False)]
)
def test_a_g_without_a_part_in_the_update_rule_is_refused(words: list[str], multirun: bool) -> None:
    asked = ["dataset=cora", "propagation.updates=one_shot", *words]
    with pytest.raises(UserError, match=r"g=\w+ has no part in propagation.updates=one_shot"):
        check_overrides(LOADER, "train", asked, multirun)


@pytest.mark.parametrize("multirun", [False, True])
def test_a_number_of_folds_is_refused_where_a_file_brings_its_own(multirun: bool) -> None:
    words = ["protocol=nested", "protocol.splits=fair"]
    check_overrides(LOADER, "train", words, multirun)
    with pytest.raises(UserError, match=r"protocol\.folds=3 has no part where protocol\.splits="):
        check_overrides(LOADER, "train", [*words, "protocol.folds=3"], multirun)


@pytest.mark.parametrize(
    "words", [["g=lin"], ["g=auto"], ["g=abs", "variant=control"], ["variant=no_adjoint"]]
)
def test_a_g_that_says_nothing_else_passes(words: list[str]) -> None:
    asked = ["dataset=cora", "propagation.updates=one_shot", *words]
    check_overrides(LOADER, "train", asked, multirun=False)


RULES = {
    "karate": "ages",
    "clique": "ages",
    "subgraph": "ages",
    "cora": "one_shot",
    "chains": "one_shot",
    "mutag": "one_shot",
    "enzymes": "one_shot",
}


@pytest.mark.parametrize(("dataset", "rule"), RULES.items())
def test_a_g_by_name_is_followed_by_its_gradient(dataset: str, rule: str) -> None:
    for words, expected in (([], rule), (["g=abs"], "gradient"), (["g=squared"], "gradient")):
        propagation = compose("train", [f"dataset={dataset}", *words]).propagation
        assert isinstance(propagation, model.LagrangianConfig)
        assert propagation.updates == expected
        # A contraction, or a few steps from zero; nothing else is found again by the test phase.
        assert propagation.gain is not None
        assert propagation.gain < 1 or propagation.updates == "ages"


def test_whole_graphs_of_any_name_have_one_recipe() -> None:
    named = compose("train", ["dataset=nci1"])
    own = compose("train", ["dataset=tu", "dataset.name=MINE"])
    assert isinstance(named.propagation, model.LagrangianConfig)
    assert (named.propagation.updates, named.propagation.gain) == ("one_shot", 0.95)
    assert own.propagation == named.propagation
    assert own.aggregator == named.aggregator
    assert named.aggregator.name == "diffusion"


def test_where_the_last_epoch_counts_its_curve_costs_one_step_per_epoch() -> None:
    for protocol in ("kfold", "holdout", "nested"):
        config = compose("train", ["dataset=mutag", f"protocol={protocol}"])
        assert selecting(config) is None
        assert config.inference.steps_per_epoch == 1


def test_a_preset_whose_validation_part_selects_lets_its_states_arrive() -> None:
    config = compose("train", ["experiment=enzymes_lp"])
    assert selecting(config) is not None
    assert config.inference.steps_per_epoch == 8


@pytest.mark.parametrize("words", [["g=abs"], ["recipe=paper"], ["recipe=none"]])
def test_the_papers_sum_where_the_papers_rule_is_asked_for(words: list[str]) -> None:
    config = compose("train", ["dataset=mutag", *words])
    assert config.aggregator.name == "sum"
    assert isinstance(config.propagation, model.LagrangianConfig)
    assert config.propagation.updates == "gradient"


def test_a_recipe_can_be_left_out() -> None:
    assert compose("train", ["dataset=karate"]).layers == 3
    assert compose("train", ["dataset=karate", "recipe=none"]).layers == 1


RECIPES = sorted(
    p.relative_to(conf_dir() / "recipe") for p in conf_dir().glob("recipe/[!_]*/*.yaml")
)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize(
    "words", ["protocol=kfold aggregator=none", "protocol=holdout readout=linear"]
)
def test_recipes_leave_the_other_choices_to_the_user(recipe: Path, words: str) -> None:
    """A recipe sets nothing that only some options of another group have."""
    chosen = [f"propagation={recipe.parent}", f"dataset={recipe.stem}", *words.split()]
    config = load(LOADER, "train", chosen)
    assert config.protocol.name == words.split("=")[1].split()[0]


def test_a_recipe_says_what_it_asks_of_one_aggregator() -> None:
    config = compose("train", ["dataset=chains"])
    assert config.aggregator.name == "diffusion"
    assert config.aggregator.hidden == []
    other = compose("train", ["dataset=chains", "aggregator=gin"])
    assert other.aggregator.hidden == compose("train", ["aggregator=gin"]).aggregator.hidden


def test_a_multirun_is_checked_value_by_value() -> None:
    check_overrides(LOADER, "train", ["layers=1,2", "g=abs,squared"], multirun=True)
    check_overrides(LOADER, "train", ["seed=range(0,3)"], multirun=True)
    check_overrides(LOADER, "train", [], multirun=True)
    check_overrides(LOADER, "train", ["lr.theta=interval(0.1,1)"], multirun=True)
    with pytest.raises(UserError, match=r"lr\.theta must be greater than 0"):
        check_overrides(LOADER, "train", ["layers=1,2", "lr.theta=1,-1"], multirun=True)
    with pytest.raises(UserError, match="layers must be a whole number, not x"):
        check_overrides(LOADER, "train", ["layers=1,x"], multirun=True)
