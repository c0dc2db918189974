"""Lagrangian propagation on a large graph, a block of its nodes at a time (`optim.batch_nodes`).

A step computes f_a for the nodes v of one block, from the states that are stored for them and for
their neighbours. Theta moves after every step, by that step's share of the gradient scaled up to
the whole. What a step learns of states and multipliers is kept until all blocks have been seen: so
an epoch of blocks moves them as one step on the whole graph would, were it not for theta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from lpgnn_cli.config.model import (
    AndersonConfig,
    InferenceConfig,
    IterationConfig,
    LagrangianConfig,
)
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.blocks import Block, Blocks, row_ranges
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.room import Room, memory_limit
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.constraints import build_constraint
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.model.mlp import pooled_statistics
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.base import Outcome, Step
from lpgnn_cli.propagation.gain import Gain, pull_back
from lpgnn_cli.propagation.lagrangian import Lagrangian, update_rule
from lpgnn_cli.propagation.one_shot import absolute, gradient, inner, moved, relative
from lpgnn_cli.propagation.saddle import (
    constraint_term,
    differentiate,
    saddle_variables,
    step_states,
)
from lpgnn_cli.propagation.solvers import (
    PLATEAU,
    SolveStats,
    States,
    node_news,
    node_violation,
    residuals,
    towards,
)
from lpgnn_cli.propagation.variables import Variables

# f_a of the nodes of a block, from the states of these and of the nodes around it.
NearFunction = Callable[[States, Block], States]


class ByBlocks(Lagrangian):
    """Common to both rules: states are there for the whole graph, and are computed with by blocks.

    There are no followers: all parts are nodes of one graph, whose states are those of training.
    """

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        assert config.optim.batch_nodes is not None
        self.size = config.optim.batch_nodes
        self.room = Room(memory_limit(config.data))
        assert len({id(batch) for batch in sets.values()}) <= 1, "all parts share a graph"
        super().__init__(network, config, sets)

    def is_mapped(self, tensor: Tensor) -> bool:
        return self.room.holds(tensor)

    def blocks(self, batch: GraphBatch) -> Blocks:
        return Blocks(batch, self.size)

    def staying(self, batch: GraphBatch) -> States:
        """Zeros in the shape of the states of all layers, for as long as training lasts."""
        like, sizes = batch.features, self.network.state_sizes
        return [self.room.zeros(like, (batch.num_nodes, size)) for size in sizes]

    def passing(self, batch: GraphBatch) -> States:
        """The same for a while."""
        like, sizes = batch.features, self.network.state_sizes
        return [self.room.passing(like, (batch.num_nodes, size)) for size in sizes]

    def near(self, block: Block) -> States:
        """x of the nodes of a block and of those around it: variables of a step."""
        states = self.variables.states.values
        return [block.rows_of(x.detach()).requires_grad_() for x in states]

    def step_theta_by_share(self, block: Block) -> None:
        """Descend by the gradient of the whole, as far as a block lets it be known."""
        for weight in self.network.parameters():
            if weight.grad is not None:
                weight.grad.div_(block.share)
        self.step_theta()

    def row_ranges(self) -> Iterator[slice]:
        return row_ranges(len(self.variables.states.values[0]), self.size)

    @torch.no_grad()
    def outcome(self, x: Sequence[Tensor], batch: GraphBatch) -> Outcome:
        transits, differences = self.passing(batch), self.passing(batch)
        scores: Tensor | None = None
        for block in self.blocks(batch):
            near = [block.rows_of(state.detach()) for state in x]
            found = self.transit(near, block)
            answer = self.network.read(near, found, block)
            if scores is None:
                scores = self.room.passing(answer, (batch.num_nodes, answer.shape[1]))
            scores[block.nodes] = answer
            wanted = residuals(_own(near, block), found)
            for whole, part in zip([*transits, *differences], [*found, *wanted], strict=True):
                whole[block.nodes] = part
        assert scores is not None, "a graph has a node"
        return Outcome([state.detach() for state in x], transits, scores, differences)

    @torch.no_grad()
    def infer(
        self, batch: GraphBatch, inference: InferenceConfig
    ) -> tuple[Outcome, SolveStats | None]:
        if not isinstance(inference, IterationConfig) or isinstance(inference, AndersonConfig):
            raise UserError(
                f"inference={inference.name} is not for a network that was trained with "
                "optim.batch_nodes: take inference=fixed_point."
            )
        self.network.eval()
        found, stats = settle(
            self.transit,
            self.blocks(batch),
            [self.passing(batch) for _ in range(3)],
            inference.tolerance,
            inference.steps,
            inference.damping,
        )
        return self.outcome(found, batch), stats

    def gain(self, outcome: Outcome, batch: GraphBatch) -> Tensor:
        def pull(probes: Sequence[Tensor]) -> States:
            pulled = self.passing(batch)
            for block in self.blocks(batch):
                near = [block.rows_of(x).requires_grad_() for x in outcome.states]
                with torch.enable_grad():
                    own = [probe[block.nodes] for probe in probes]
                    parts = pull_back(own, self.transit(near, block), near)
                for total, part in zip(pulled, parts, strict=True):
                    block.add_to(total, part)
            return pulled

        return Gain.by_products(pull, outcome.states, batch)

    def pullback(self, batch: GraphBatch, inference: InferenceConfig) -> None:
        return None

    def take_statistics(self, batch: GraphBatch) -> None:
        if self.network.has_statistics:
            with torch.no_grad(), pooled_statistics(self.network):
                for block in self.blocks(batch):
                    near = self.near(block)
                    self.network.read(near, self.transit(near, block), block)


@update_rule("gradient by blocks")
class GradientByBlocks(ByBlocks):
    """The paper's rule: what x and lambda of a block have to do with its constraints."""

    def start(self, batch: GraphBatch) -> Variables:
        self.g = build_constraint(self.config.g)
        self.gradients = self.staying(batch)
        return saddle_variables(self.config, self.staying(batch), batch, self.room.zeros)

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        settings, block = self.settings, part.batch
        assert isinstance(block, Block)
        taken = self.variables.multipliers.take(block.nodes)
        x, multipliers = self.near(block), taken.values

        transits = self.transit(x, block)
        residual = residuals(_own(x, block), transits)
        scores = self.network.read(x, transits, block)
        loss = supervised_loss(part, scores, settings.loss_reduction)
        constraints = constraint_term(residual, multipliers, self.g, settings.rho, "sum")
        if settings.constraint_reduction == "mean":
            constraints = constraints / block.whole.num_nodes
        lagrangian = loss + constraints

        self.theta.zero_grad()
        taken.zero_grad()
        others = [*self.network.weights, *multipliers]
        differentiate(lagrangian, constraints, x, others, settings.supervise_states)
        for total, state in zip(self.gradients, x, strict=True):
            block.add_to(total, gradient(state))

        if epoch > settings.warmup:
            self.step_theta_by_share(block)
            taken.step()
            self.variables.multipliers.put_back(block.nodes, taken)
        return Step.of(scores, lagrangian / block.share, residual)

    def finish_epoch(self, epoch: int) -> None:
        nodes = len(self.gradients[0])
        for rows in self.row_ranges():
            with self.variables.of_rows(rows) as now:
                for x, total in zip(now.states.values, self.gradients, strict=True):
                    x.grad = total[rows]
                step_states(now, self.config, nodes)
                now.zero_grad()
            for total in self.gradients:
                total[rows] = 0.0


@update_rule("one_shot by blocks")
class OneShotByBlocks(ByBlocks):
    """x(v) <- f_a(v) by the block of v; J^T pulls lambda to the neighbours, too, and their sum over
    all blocks is the lambda of the next epoch."""

    def start(self, batch: GraphBatch) -> Variables:
        self.following, self.pulled = self.staying(batch), self.staying(batch)
        return Variables.start(self.staying(batch), batch, zeros=self.room.zeros)

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        settings, block = self.settings, part.batch
        assert isinstance(block, Block)
        x = self.near(block)

        transits = self.transit(x, block)
        residual = residuals(_own(x, block), transits)
        scores = self.network.read(x, transits, block)
        loss = supervised_loss(part, scores, settings.loss_reduction)
        kept = [m.detach()[block.nodes] for m in self.variables.multipliers.values]
        multipliers = absolute(kept, transits)
        adjoint = inner(multipliers, transits)

        self.theta.zero_grad()
        (loss + adjoint).backward()

        with torch.no_grad():
            lagrangian = loss - inner(multipliers, residual)
            if epoch > settings.warmup:
                self.step_theta_by_share(block)
                if settings.adjoint:
                    for total, state in zip(self.pulled, x, strict=True):
                        block.add_to(total, gradient(state))
            arrived = moved(_own(x, block), transits, settings.damping)
            for total, state in zip(self.following, arrived, strict=True):
                total[block.nodes] = state
        return Step.of(scores, lagrangian / block.share, residual)

    @torch.no_grad()
    def finish_epoch(self, epoch: int) -> None:
        settings, variables = self.settings, self.variables
        for rows in self.row_ranges():
            x = [state[rows] for state in variables.states.values]
            if epoch > settings.warmup and settings.adjoint:
                pulled = [total[rows] for total in self.pulled]
                arrived = [relative(state, pull) for state, pull in zip(x, pulled, strict=True)]
                multipliers = [m[rows] for m in variables.multipliers.values]
                for old, new in zip(
                    multipliers, moved(multipliers, arrived, settings.damping), strict=True
                ):
                    old.copy_(new)
                for pull in pulled:
                    pull.zero_()
            for state, new in zip(x, self.following, strict=True):
                state.copy_(new[rows])


def numbers_that_stay(config: TrainConfig, sizes: Sequence[int]) -> int:
    """How many numbers per node are there throughout training: states, multipliers, their moments
    and what an epoch gathers for them."""
    settings, total = config.propagation, sum(sizes)
    assert isinstance(settings, LagrangianConfig)
    if settings.updates == "one_shot":
        return 4 * total
    # An optimiser's memory and its count of steps.
    moments = {"adam": 2, "adamw": 2}.get(config.optim.name, 1)
    per_node = total if settings.multiplier == "element" else len(sizes)
    moved = total if settings.state_step == "optimiser" else 0
    return 2 * total + per_node + moments * (moved + per_node) + 2 * len(sizes)


def numbers_that_pass(sizes: Sequence[int]) -> int:
    """The same for the test phase, scores apart: three iterates, and what they end in."""
    return 5 * sum(sizes)


def _own(near: Sequence[Tensor], block: Block) -> States:
    """Of rows of a block and of the nodes around it, those of the block."""
    return [block.own(x) for x in near]


def settle(
    f: Callable[[States, Block], Sequence[Tensor]],
    blocks: Blocks,
    room: Sequence[States],
    tolerance: float,
    steps: int,
    damping: float,
) -> tuple[States, SolveStats]:
    """x <- x + damping (f(x) - x) from zero, by blocks, until every graph has settled: what `solve`
    does in a relative solve, within three times the room of the states."""
    x, following, best = room
    batch = blocks.whole
    nodes = batch.graph_ptr.diff().clamp(min=1)
    least = x[0].new_full((batch.num_graphs,), torch.inf)
    settled = torch.zeros_like(least, dtype=torch.bool)
    taken = 0
    while taken < steps:
        taken += 1
        total, news = torch.zeros_like(least), torch.zeros_like(least)
        for block in blocks:
            near = [block.rows_of(state) for state in x]
            own, target = _own(near, block), f(near, block)
            wanted = residuals(own, target)
            graph = batch.graph_of_node[block.nodes]
            total.index_add_(0, graph, node_violation(wanted))
            news.scatter_reduce_(0, graph, node_news(wanted, own), "amax")
            for new, old, there in zip(following, own, target, strict=True):
                new[block.nodes] = towards(old, there, damping)
        violation = total / nodes
        better = (violation <= PLATEAU * least) & ~settled
        least = torch.where(better, violation.minimum(least), least)
        settled |= news <= tolerance
        _keep(x, best, better, blocks)
        if bool(settled.all()):
            break
        x, following = following, x
    converged = float(settled.sum()) / batch.num_graphs
    return best, SolveStats(taken, float(least.mean()), converged)


def _keep(x: States, best: States, better: Tensor, blocks: Blocks) -> None:
    """Copy the states of the graphs that are better."""
    if bool(better.all()):
        for new, old in zip(x, best, strict=True):
            old.copy_(new)
    elif bool(better.any()):
        for rows in row_ranges(blocks.whole.num_nodes, blocks.size):
            keep = better[blocks.whole.graph_of_node[rows], None]
            for new, old in zip(x, best, strict=True):
                old[rows] = torch.where(keep, new[rows], old[rows])
