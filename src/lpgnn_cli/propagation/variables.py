"""The free variables of Lagrangian propagation: states x and multipliers lambda of some graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from lpgnn_cli.data.batch import GraphBatch, ranges
from lpgnn_cli.propagation.optim import scale_lr

MakeOptimiser = Callable[[list[Tensor]], Optimizer]
# Zeros of the kind of a tensor, in a shape.
MakeZeros = Callable[[Tensor, tuple[int, ...]], Tensor]
Rows = Tensor | slice


class Player:
    """Tensors with one row per node, and the optimiser that moves them: all rows or some."""

    def __init__(
        self,
        values: Sequence[Tensor],
        make_optimiser: MakeOptimiser | None,
        zeros: MakeZeros = Tensor.new_zeros,
    ) -> None:
        self.values = [value.detach().requires_grad_() for value in values]
        self.zeros = zeros
        self.make_optimiser = make_optimiser
        self.optimiser = None if make_optimiser is None else make_optimiser(self.values)

    def zero_grad(self) -> None:
        for value in self.values:
            value.grad = None

    def step(self) -> None:
        assert self.optimiser is not None, "this player is moved by hand"
        self.optimiser.step()

    def scale_lr(self, scale: float) -> None:
        if self.optimiser is not None:
            scale_lr(self.optimiser, scale)

    def take(self, rows: Rows) -> Player:
        """Some rows, with their own rows of what the optimiser remembers; a copy, but a range of
        rows is itself what is taken."""
        taken = Player([_rows(value.detach(), rows) for value in self.values], self.make_optimiser)
        if self.optimiser is None or taken.optimiser is None:
            return taken
        (mine,), (group,) = self.optimiser.param_groups, taken.optimiser.param_groups
        group["lr"] = mine["lr"]
        for whole, part in zip(self.values, taken.values, strict=True):
            for key, memory in self.optimiser.state[whole].items():
                taken.optimiser.state[part][key] = _taken(memory, rows)
        return taken

    def put_back(self, rows: Rows, taken: Player) -> None:
        with torch.no_grad():
            for whole, part in zip(self.values, taken.values, strict=True):
                _put(whole, rows, part)
                if self.optimiser is not None and taken.optimiser is not None:
                    memories = self.optimiser.state[whole]
                    for key, memory in taken.optimiser.state[part].items():
                        memories[key] = self._put_back(memories.get(key), memory, rows, len(whole))

    def _put_back(self, whole: Any, memory: Any, rows: Rows, size: int) -> Any:
        if not isinstance(memory, Tensor):
            return memory
        if not isinstance(whole, Tensor) or whole.dim() == 0:
            # Rows that have never been taken start as an optimiser does: at zero.
            whole = self.zeros(memory, (size, *memory.shape[1:]))
        _put(whole, rows, memory)
        return whole

    @torch.no_grad()
    def zero(self, rows: Tensor) -> None:
        """Put these rows, given by a mask, back to zero."""
        for value in self.values:
            value.masked_fill_(rows[:, None], 0.0)

    def state_dict(self) -> dict[str, Any]:
        saved: dict[str, Any] = {"values": [value.detach() for value in self.values]}
        if self.optimiser is not None:
            saved["optimiser"] = self.optimiser.state_dict()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.set(saved["values"])
        if self.optimiser is None:
            return
        before = {value: dict(self.optimiser.state[value]) for value in self.values}
        self.optimiser.load_state_dict(saved["optimiser"])
        for value in self.values:
            memories = self.optimiser.state[value]
            for key, memory in memories.items():
                if isinstance(memory, Tensor) and memory.dim() > 0:
                    mine = before[value].get(key)
                    if mine is None or mine.shape != memory.shape:
                        mine = self.zeros(memory, tuple(memory.shape))
                    memories[key] = mine.copy_(memory)

    @torch.no_grad()
    def set(self, values: Sequence[Tensor]) -> None:
        for mine, value in zip(self.values, values, strict=True):
            mine.copy_(value)


def _rows(whole: Tensor, rows: Rows) -> Tensor:
    # Indexing by brackets takes ten times as long for the few rows of a mini-batch.
    return whole[rows] if isinstance(rows, slice) else whole.index_select(0, rows)


def _put(whole: Tensor, rows: Rows, part: Tensor) -> None:
    if isinstance(rows, slice):
        whole[rows] = part
    elif part.dim() == 0:
        whole.index_fill_(0, rows, part)
    else:
        whole.index_copy_(0, rows, part)


def _taken(memory: Any, rows: Rows) -> Any:
    """Moments have a row per node. So do counts of steps, which an optimiser wants as one number:
    graphs that are taken together have been taken equally often."""
    if not isinstance(memory, Tensor) or memory.dim() == 0:
        return memory
    if memory.dim() > 1:
        return _rows(memory, rows)
    return memory[rows.start if isinstance(rows, slice) else rows[0]].clone()


class Variables:
    """x and lambda of every layer, lowest first, of a set of graphs that are known by number."""

    def __init__(self, states: Player, multipliers: Player, graph_ptr: Tensor) -> None:
        self.states = states
        self.multipliers = multipliers
        self.graph_ptr = graph_ptr

    @classmethod
    def start(
        cls,
        zero_states: Sequence[Tensor],
        batch: GraphBatch,
        *,
        multiplier: float = 0.0,
        per_element: bool = True,
        move_states: MakeOptimiser | None = None,
        move_multipliers: MakeOptimiser | None = None,
        zeros: MakeZeros = Tensor.new_zeros,
    ) -> Variables:
        """x = 0 and lambda at its start value: one per element, or one per node."""
        multipliers = [
            zeros(x, (len(x), x.shape[1] if per_element else 1)).fill_(multiplier)
            for x in zero_states
        ]
        return cls(
            Player(zero_states, move_states, zeros),
            Player(multipliers, move_multipliers, zeros),
            batch.graph_ptr,
        )

    @contextmanager
    def of(self, graphs: Tensor | None) -> Iterator[Variables]:
        """The variables of these graphs (None: of all), which are written back in the end."""
        if graphs is None:
            yield self
            return
        with self.of_rows(self.rows(graphs)) as taken:
            yield taken

    @contextmanager
    def of_rows(self, rows: Rows) -> Iterator[Variables]:
        """The variables in these rows, which are written back in the end."""
        taken = Variables(self.states.take(rows), self.multipliers.take(rows), self.graph_ptr)
        yield taken
        self.states.put_back(rows, taken.states)
        self.multipliers.put_back(rows, taken.multipliers)

    def rows(self, graphs: Tensor) -> Tensor:
        """The rows that belong to the nodes of these graphs."""
        return ranges(self.graph_ptr[graphs], self.graph_ptr[graphs + 1])

    def zero_grad(self) -> None:
        self.states.zero_grad()
        self.multipliers.zero_grad()

    def scale_lr(self, scale: float) -> None:
        self.states.scale_lr(scale)
        self.multipliers.scale_lr(scale)

    def state_dict(self) -> dict[str, Any]:
        return {"states": self.states.state_dict(), "multipliers": self.multipliers.state_dict()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.states.load_state_dict(saved["states"])
        self.multipliers.load_state_dict(saved["multipliers"])
