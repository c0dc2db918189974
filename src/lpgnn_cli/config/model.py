"""Schemas of what makes a network: aggregator, g, propagation, readout, inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from lpgnn_cli.config.fields import positive, setting
from lpgnn_cli.config.registry import Options

ACTIVATIONS = ("tanh", "relu", "sigmoid", "elu", "leaky_relu", "gelu", "identity")
NORMS = ("none", "batch", "layer")
READ_NORMS = (*NORMS, "unit")
REDUCTIONS = ("sum", "mean")

AGGREGATORS: Options[Any] = Options("aggregator", common="_common")
CONSTRAINTS: Options[Any] = Options("g")
PROPAGATIONS: Options[Any] = Options("propagation")


@AGGREGATORS.declare("gcn", "sage", "none")
@dataclass
class AggregatorConfig:
    """The transition f_a: what every aggregator has."""

    name: str = setting(choices=AGGREGATORS.names)
    hidden: list[int] = setting(low=1, high=100_000)
    activation: str = setting(choices=ACTIVATIONS)
    output_activation: str = setting(choices=ACTIVATIONS)
    dropout: float = setting(low=0, high=1, high_open=True)
    norm: str = setting(choices=NORMS)


@AGGREGATORS.declare("sum", "avg")
@dataclass
class ArcMlpConfig(AggregatorConfig):
    """`sum` and `avg`: h is an MLP on every arc."""

    own_state: bool = setting()


@AGGREGATORS.declare("gin")
@dataclass
class GinConfig(AggregatorConfig):
    """`gin`: an MLP on (1 + eps) z_v + sum of z_u."""

    eps: float = setting()
    train_eps: bool = setting()


@AGGREGATORS.declare("gat")
@dataclass
class GatConfig(AggregatorConfig):
    """`gat`: attention over neighbours."""

    heads: int = setting(low=1, high=1000)
    combine: str = setting(choices=("mean", "concat"))


@AGGREGATORS.declare("selection", "median")
@dataclass
class FilterConfig(AggregatorConfig):
    """`selection` and `median`: graph filters over several shifts."""

    taps: int = setting(low=1, high=1000)


@AGGREGATORS.declare("diffusion")
@dataclass
class DiffusionConfig(AggregatorConfig):
    """`diffusion`: a linear way for states beside a free one for labels."""

    operator: str = setting(choices=("symmetric", "mean", "radius"))
    self_loops: bool = setting()
    own_state: bool = setting()
    mixing: str = setting(choices=("learnt", "identity"))
    neighbour_labels: bool = setting()
    label_gate: bool = setting()
    label_scale: float = positive()
    bias: bool = setting()


@CONSTRAINTS.declare("lin", "abs", "squared")
@dataclass
class ConstraintConfig:
    """The function G that relaxes x = f_a(x)."""

    name: str = setting(choices=CONSTRAINTS.names)


@CONSTRAINTS.declare("lin_eps", "abs_eps", "norm1_eps")
@dataclass
class InsensitiveConstraintConfig(ConstraintConfig):
    """A G that is zero on [-eps, eps]."""

    eps: float = setting(low=0)


@dataclass
class PropagationConfig:
    """What every propagation has."""

    # Whether f_a is a function of labels alone: then there is no state x beside its output.
    stateless: ClassVar[bool] = False

    name: str = setting(choices=PROPAGATIONS.names)
    loss_reduction: str = setting(choices=REDUCTIONS)
    norm: str = setting(choices=NORMS)
    upper: str = setting(choices=("all", "own"))

    @property
    def output(self) -> tuple[str, str]:
        """Normalisation and activation of what a transition puts out, for the next and for f_r."""
        return "none", "identity"

    @property
    def hand_up_norm(self) -> str:
        """Normalisation of what the next layer sees alone."""
        return self.norm

    @property
    def words(self) -> list[str]:
        """What tells runs of this propagation apart."""
        return [self.name]

    @property
    def uses_g(self) -> bool:
        """Whether the function G has a part in it."""
        return False

    def against_node_batches(self) -> Iterator[str]:
        """What keeps it from a part of a graph's nodes at a time, one sentence each."""
        yield (
            f"optim.batch_nodes is not for propagation={self.name}, which needs the neighbours of "
            "neighbours, too: take propagation=lagrangian, or no batches of nodes."
        )


@dataclass
class ContractiveConfig(PropagationConfig):
    """Propagations that look for a fixed point, and may keep the transition a contraction."""

    gain: float | None = positive()
    gain_held_by: str = setting(choices=("weights", "penalty"))
    gain_penalty: float = setting(low=0)


@PROPAGATIONS.declare("lagrangian")
@dataclass
class LagrangianConfig(ContractiveConfig):
    """States and multipliers are free variables beside the weights."""

    updates: str = setting(choices=("gradient", "one_shot", "ages"))
    states: str = setting(choices=("free", "frozen"))
    adjoint: bool = setting()
    ages: int = setting(low=1)
    clip: float | None = positive()
    restart: float = setting(low=0, high=1)
    state_step: str = setting(choices=("optimiser", "preconditioned"))
    multiplier: str = setting(choices=("node", "element"))
    multiplier_start: float = setting()
    constraint_reduction: str = setting(choices=REDUCTIONS)
    supervise_states: bool = setting()
    rho: float = setting(low=0)
    warmup: int = setting(low=0)
    hand_up: str = setting(choices=("state", "transition"))
    damping: float = setting(low=0, low_open=True, high=1)

    @property
    def words(self) -> list[str]:
        rule = "frozen" if self.states == "frozen" else self.updates
        return [self.name] if rule == "gradient" else [self.name, rule]

    @property
    def uses_g(self) -> bool:
        return self.states == "free" and self.updates == "gradient"

    def against_node_batches(self) -> Iterator[str]:
        if self.states == "frozen" or self.updates == "ages":
            wrong = "states=frozen" if self.states == "frozen" else "updates=ages"
            yield (
                f"optim.batch_nodes is not for propagation.{wrong}: take "
                "propagation.updates=one_shot or gradient with free states."
            )
        if self.hand_up == "transition":
            yield (
                "optim.batch_nodes with propagation.hand_up=transition would need the neighbours "
                "of neighbours: take propagation.hand_up=state."
            )
        if self.gain is not None and self.gain_held_by == "penalty":
            yield (
                "optim.batch_nodes has no measured gain to penalise: take "
                "propagation.gain_held_by=weights."
            )

    def disagreements(self) -> Iterator[str]:
        if not self.adjoint and self.updates == "gradient":
            yield (
                "propagation.adjoint=false is a control of one_shot and ages: "
                "add propagation.updates=one_shot or ages."
            )
        driven = self.updates != "gradient" or self.multiplier_start != 0 or self.rho != 0
        if self.warmup and not driven:
            yield (
                "propagation.warmup moves the states by the constraints alone: give "
                "propagation.multiplier_start or propagation.rho a value above 0."
            )


@PROPAGATIONS.declare("fixed_point")
@dataclass
class FixedPointConfig(ContractiveConfig):
    """GNN*: iterate the transition to convergence in every epoch."""

    max_iterations: int = setting(low=1)
    tolerance: float = positive()
    backward: str = setting(choices=("unrolled", "implicit"))
    solver: str = setting(choices=("damped", "anderson"))
    damping: float = setting(low=0, low_open=True, high=1)
    memory: int = setting(low=1, high=1000)


@PROPAGATIONS.declare("layers")
@dataclass
class LayersConfig(PropagationConfig):
    """Each transition applied once: an ordinary graph network."""

    stateless: ClassVar[bool] = True

    activation: str = setting(choices=ACTIVATIONS)

    @property
    def output(self) -> tuple[str, str]:
        return self.norm, self.activation

    @property
    def hand_up_norm(self) -> str:
        return "none"


@dataclass
class ReadoutConfig:
    """The output function f_r."""

    learnt: bool = setting()
    source: str = setting(choices=("transition", "state", "auto"))
    neighbours: bool = setting()
    layers: str = setting(choices=("last", "all"))
    label_gate: bool = setting()
    node_hidden: list[int] = setting(low=1, high=100_000)
    pool: str = setting(choices=REDUCTIONS)
    scale: float | None = positive()
    hidden: list[int] = setting(low=1, high=100_000)
    activation: str = setting(choices=ACTIVATIONS)
    dropout: float = setting(low=0, high=1, high_open=True)
    norm: str = setting(choices=READ_NORMS)

    def disagreements(self) -> Iterator[str]:
        inside = self.hidden or self.node_hidden
        more = inside or self.neighbours or self.layers == "all" or self.label_gate
        if not self.learnt and more:
            yield (
                "readout.learnt=false takes the last states for scores: it goes with "
                "readout.hidden=[], readout.node_hidden=[], readout.neighbours=false, "
                "readout.label_gate=false and readout.layers=last."
            )


@dataclass
class InferenceConfig:
    """The test phase: how the states of unseen graphs are found with theta frozen."""

    name: str = setting(choices=("lagrangian", "fixed_point", "anderson"))
    steps: int = setting(low=1)
    steps_per_epoch: int = setting(low=1)
    tolerance: float = positive()


@dataclass
class IterationConfig(InferenceConfig):
    """Damped fixed-point iteration."""

    damping: float = setting(low=0, low_open=True, high=1)


@dataclass
class AndersonConfig(IterationConfig):
    """Anderson acceleration of the same iteration."""

    memory: int = setting(low=1, high=1000)
