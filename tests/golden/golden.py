"""A record of metrics to the last bit, to hold a refactor against: `make golden`.

Every case runs the real command in a process of its own, on one thread. What it leaves behind is
digested column by column, so that a metric that is added later does not disturb the comparison.
The bits depend on the machine and on torch: a record is compared only where it was made, and
`make golden ARGS=--record` on the commit before a change makes one.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("record.json")
SOBER = ("tracking=none", "threads=1", "protocol.workers=1", "device=cpu", "figures=false")
MUTAG = ("dataset=mutag", "protocol.folds=2", "epochs=8")
PLAIN = ("recipe=none",)

TRAIN: dict[str, tuple[str, ...]] = {
    "mutag": MUTAG,
    "mutag-squared": (*MUTAG, "g=squared"),
    "mutag-k3-abs_eps": (*MUTAG, "layers=3", "g=abs_eps"),
    "mutag-letter": (*MUTAG, *PLAIN, "propagation.rho=0.5", "propagation.warmup=3"),
    "mutag-one_shot-sum": (*MUTAG, "aggregator=sum", "layers=2"),
    "mutag-frozen": (*MUTAG, "propagation.states=frozen"),
    "mutag-gat": (*MUTAG, "aggregator=gat"),
    "mutag-gcn-mean": (*MUTAG, "g=abs", "aggregator=gcn", "propagation.constraint_reduction=mean"),
    "mutag-sage-anderson": (*MUTAG, "aggregator=sage", "inference=anderson"),
    "mutag-selection": (*MUTAG, "aggregator=selection", "inference=fixed_point"),
    "mutag-median": (*MUTAG, "aggregator=median", "epochs=3"),
    "mutag-penalty": (
        *MUTAG,
        *PLAIN,
        "propagation.gain=0.9",
        "propagation.gain_held_by=penalty",
        "optim=adamw",
    ),
    "mutag-float64-rmsprop": (*MUTAG, "g=squared", "precision=float64", "optim=rmsprop"),
    "mutag-holdout": ("dataset=mutag", "protocol=holdout", "epochs=12", "protocol.patience=4"),
    "gin-layers": (*MUTAG, "aggregator=gin", "propagation=layers", "layers=3"),
    "mlp-layers": (
        *MUTAG,
        "aggregator=none",
        "propagation=layers",
        "optim=sgd",
        "optim.momentum=0.5",
    ),
    "gnn-unrolled": (*MUTAG, "propagation=fixed_point"),
    "gnn-implicit": (
        *MUTAG,
        "propagation=fixed_point",
        "propagation.backward=implicit",
        "propagation.gain=0.9",
        "propagation.gain_held_by=penalty",
        "layers=2",
    ),
    "karate": ("dataset=karate", "epochs=40"),
    "karate-one_shot": ("dataset=karate", "epochs=40", "propagation.updates=one_shot"),
    "clique": ("dataset=clique", "epochs=25"),
    "clique-two-seeds": (
        "dataset=clique",
        "epochs=15",
        "g=lin",
        "propagation.rho=1",
        "propagation.multiplier=element",
        "protocol.seeds=2",
    ),
    "subgraph-gnn": ("dataset=subgraph", "epochs=10", "propagation=fixed_point"),
    "csl-flips": ("dataset=csl", "protocol=kfold", "protocol.folds=2", "epochs=6"),
}
# Two halves, the second one resumed, against the whole of it; a case of TRAIN, with learning rates
# and evaluations that do not depend on how many epochs are planned.
UNPLANNED = ("optim.schedule=step", "evaluate_every=1")
RESUMED = {"mutag": (4, 8), "clique": (10, 25), "gin-layers": (3, 8), "karate-one_shot": (20, 40)}
EVAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "eval-mutag": ("mutag", ()),
    "eval-mutag-anderson": ("mutag", ("inference=anderson",)),
    "eval-mutag-unseen": ("mutag", ("dataset=mutag",)),
    "eval-clique": ("clique", ()),
    "eval-gnn": ("gnn-implicit", ()),
    "eval-gin-unseen": ("gin-layers", ("dataset=mutag",)),
}


def main() -> int:
    """Record, or compare with the record and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the record anew")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        cases = dict(pool.map(lambda name: (name, train(name, Path(folder))), TRAIN))
        cases |= pool.map(lambda name: (f"whole-{name}", whole(name, Path(folder))), RESUMED)
        cases |= pool.map(lambda name: (f"resumed-{name}", resume(name, Path(folder))), RESUMED)
        cases |= pool.map(lambda name: (name, evaluate(name, Path(folder))), EVAL)
    if args.record:
        RECORD.write_text(
            json.dumps({"machine": machine(), "cases": cases}, indent=1, sort_keys=True) + "\n"
        )
        print(f"recorded {len(cases)} cases.")
        return 0
    record = json.loads(RECORD.read_text())
    if record["machine"] != machine():
        print(f"the record was made elsewhere: {record['machine']}, here is {machine()}.")
        return 1
    different = sorted(set(differences(record["cases"], cases)))
    for line in different:
        print(line)
    print(f"{len(cases)} cases, {len(different)} differences.")
    return 1 if different else 0


def machine() -> str:
    """What the last bits depend on."""
    import torch

    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def train(name: str, root: Path) -> dict[str, str]:
    lpgnn(root / name, "train", *TRAIN[name], *SOBER)
    return digest(only_run(root / name))


def whole(name: str, root: Path) -> dict[str, str]:
    """What `resume` must give."""
    folder = root / f"whole-{name}"
    lpgnn(folder, "train", *TRAIN[name], *UNPLANNED, *SOBER)
    return digest(only_run(folder))


def resume(name: str, root: Path) -> dict[str, str]:
    """The first half, then the rest from its checkpoint."""
    first, last = RESUMED[name]
    folder = root / f"resumed-{name}"
    lpgnn(folder, "train", *TRAIN[name], *UNPLANNED, f"epochs={first}", *SOBER)
    lpgnn(folder, "train", f"resume={only_run(folder)}", f"epochs={last}")
    return digest(only_run(folder))


def evaluate(name: str, root: Path) -> dict[str, str]:
    trained, words = EVAL[name]
    run = only_run(root / trained)
    lpgnn(root / name, "eval", f"run={run}", "tracking=none", "device=cpu", "threads=1", *words)
    return digest(only_run(root / name))


def lpgnn(folder: Path, *words: str) -> None:
    """The real command, with runs of its own."""
    environment = os.environ | {"LPGNN_RUNS": str(folder), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        [sys.executable, "-m", "lpgnn_cli", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"lpgnn {' '.join(words)} failed:\n{done.stderr}")


def only_run(folder: Path) -> Path:
    (record,) = folder.rglob("run.json")
    return record.parent


def digest(run: Path) -> dict[str, str]:
    """Every column of every table and every number of every unit's result, each digested."""
    found: dict[str, str] = {}
    for unit in sorted((run / "units").iterdir()):
        for table in ("metrics.csv", "predictions.csv"):
            with (unit / table).open(newline="") as file:
                rows = list(csv.DictReader(file))
            for column in rows[0]:
                if column != "time":
                    values = "\n".join(row[column] for row in rows)
                    key = f"{unit.name}/{table}/{column}"
                    found[key] = hashlib.sha256(values.encode()).hexdigest()[:16]
        result = json.loads((unit / "result.json").read_text())
        for key in ("epochs", "selected_epoch", "metrics", "from_zero", "persistent", "inference"):
            found |= {f"{unit.name}/result/{k}": repr(v) for k, v in leaves(key, result[key])}
    return found


def leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(f"{key}/{name}", inner)
    else:
        yield key, value


def differences(
    recorded: dict[str, dict[str, str]], found: dict[str, dict[str, str]]
) -> Iterator[str]:
    """What the record has and the tree does not give any more."""
    for case, values in recorded.items():
        for key, value in values.items():
            now = found.get(case, {}).get(key)
            if now != value:
                yield f"{case}: {key} was {value}, now {now}"
    for name in RESUMED:
        if found[f"resumed-{name}"] != found[f"whole-{name}"]:
            yield f"resumed-{name}: not the uninterrupted run"


if __name__ == "__main__":
    sys.exit(main())
