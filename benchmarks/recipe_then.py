"""The recipes of version 0.1.0 (commit 4b58554) in today's words, where today's say something else.

Its bound of the weights, too, has a name today, but held no promise then: today's epoch does more.
"""

from __future__ import annotations

COMMIT = "4b58554"
EVERYWHERE = [
    "aggregator=sum",
    "g=squared",
    "optim.batch_graphs=null",
    "optim.schedule=step",
    "optim.decay=0.5",
    "readout.node_hidden=[]",
    "readout.dropout=0",
    "propagation.gain=0.3",
    "inference=lagrangian",
]
RECIPES = {
    "mutag": ["epochs=400", "optim.decay_every=150", "readout.scale=0.03"],
    "nci1": ["epochs=100", "optim.decay_every=50", "readout.scale=0.05"],
    "imdb_b": ["epochs=150", "optim.decay_every=75", "readout.scale=0.05", "readout.norm=none"],
}


def recipe_then(dataset: str) -> list[str]:
    return [*EVERYWHERE, *RECIPES[dataset]]
