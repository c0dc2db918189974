"""`make fuzz`: thousands of damaged and absurd inputs; each is read, or refused in one sentence.

Whatever else happens is a failure: another exception, a damaged checkpoint that loads, a file that
appears where none belongs. The same seed gives the same cases.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lpgnn_cli.cli import main as lpgnn
from lpgnn_cli.config.compose import compose
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.datasets.graphs import read_graphs
from lpgnn_cli.data.splits import _read_index
from lpgnn_cli.data.tu import read_tables
from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.pastruns import runs_in_folders
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.training.checkpoint import load_checkpoint
from lpgnn_cli.training.experiment import read_config

REFUSED, READ = "refused", "read"
WORDS = ["tracking=none", "threads=1", "protocol.workers=1", "figures=false", "quiet=true"]
SMALL = ["dataset=clique", "dataset.graphs=8", "dataset.nodes=5", "state=[4]", "epochs=2"]
NASTY = [
    "", "-1", "0", "nan", "inf", "-inf", "1e999", "9" * 30, "9" * 5000, "null", "true", "[]", "{}",
    "../../x", "/etc/passwd", "${oc.env:HOME}", "${seed}", "&a [*a]", "*a",
    "!!python/name:os.system",
    "\x00", "\x1b[2J", "\u202e", "ä" * 300, "[" * 300, "{" * 300, "'", '"', "\\", "a=b", "a,b", "~",
    "1_000", "0x10", "1.0", "+1", " 1", "1 ", "\u017f", "\uff11", "[red]", "_target_", "os.system",
]  # fmt: skip
KEYS = [
    "dataset", "g", "aggregator", "propagation", "protocol", "optim", "layers", "state", "epochs",
    "seed", "lr.theta", "lr", "name", "threads", "device", "protocol.folds", "protocol.seeds",
    "protocol.workers", "tracking.uri", "dataset.graphs", "aggregator.hidden", "precision",
    "resume", "checkpoint_every", "readout.dropout", "inference.steps", "nonsense",
    "hydra.run.dir", "data.root",
]  # fmt: skip


@dataclass
class Workshop:
    """Good input of every kind, to be damaged."""

    folder: Path
    run: Path
    good: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> Workshop:
        os.environ.update(LPGNN_RUNS=str(folder / "runs"), LPGNN_CACHE=str(folder / "cache"))
        assert lpgnn(["train", *WORDS, *SMALL]) == 0
        (record,) = (folder / "runs").glob("train/*/*/run.json")
        shop = cls(folder, record.parent)
        with zipfile.ZipFile(folder / "t.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("T/T_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n")
            file.writestr("T/T_graph_indicator.txt", "1\n1\n2\n2\n")
            file.writestr("T/T_graph_labels.txt", "0\n1\n")
            file.writestr("T/T_node_attributes.txt", "0.5, 1\n1, 2\n3, 4\n5, 6\n")
        np.savez_compressed(
            folder / "g.npz",
            features=np.ones((4, 2), np.float32),
            source=np.array([0, 1, 2, 3]),
            target=np.array([1, 0, 3, 2]),
            graph_ptr=np.array([0, 2, 4]),
            targets=np.array([0, 1]),
        )
        for name in ("t.zip", "g.npz"):
            shop.good[name] = (folder / name).read_bytes()
        for path in [*shop.run.glob("*.*"), *shop.run.glob("units/*/*.*")]:
            shop.good[str(path.relative_to(shop.run))] = path.read_bytes()
        return shop


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Some bits, bytes or pieces changed, cut out, repeated or replaced by something nasty."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(damaged) + 1)
        length = chance.choice((1, 1, 2, 8, 64))
        kind = chance.randrange(6)
        if kind == 0 and damaged:
            damaged[at % len(damaged)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del damaged[at : at + length]
        elif kind == 2:
            damaged[at:at] = damaged[at : at + length]
        elif kind == 3:
            damaged[at:at] = chance.choice(NASTY).encode(errors="surrogatepass")
        elif kind == 4:
            damaged[at : at + length] = chance.randbytes(length)
        else:
            del damaged[at:]
    return bytes(damaged)


def tu_zip(shop: Workshop, chance: random.Random) -> str:
    path = shop.folder / "case.zip"
    if chance.random() < 0.5:
        path.write_bytes(mutate(shop.good["t.zip"], chance))
    else:
        with zipfile.ZipFile(shop.folder / "t.zip") as good, zipfile.ZipFile(path, "w") as bad:
            spoilt = chance.choice(good.namelist())
            for name in good.namelist():
                text = good.read(name)
                bad.writestr(name, mutate(text, chance) if name == spoilt else text)
    return attempt(lambda: read_tables(read_files(path, "T")))


def node_file(shop: Workshop, chance: random.Random) -> str:
    path = shop.folder / "case.npz"
    path.write_bytes(mutate(shop.good["g.npz"], chance))
    return attempt(lambda: read_graphs(path))


def splits(shop: Workshop, chance: random.Random) -> str:
    path = shop.folder / "case.index"
    path.write_bytes(mutate(b"0,1,2,3\n4,5,6,7\n", chance))
    return attempt(lambda: _read_index(path, 8))


def checkpoint(shop: Workshop, chance: random.Random) -> str:
    good = shop.good["units/fold-00/last.pt"]
    damaged = mutate(good, chance)
    path = shop.folder / "case.pt"
    path.write_bytes(damaged)
    outcome = attempt(lambda: load_checkpoint(path))
    if outcome == READ and damaged != good:
        raise AssertionError("a damaged checkpoint was loaded")
    return outcome


def run_folder(shop: Workshop, chance: random.Random) -> str:
    """Looked at, and reopened as far as before any training."""
    names = ["run.json", "config.yaml", "summary.json", "units/fold-00/result.json"]
    name = chance.choice(names)
    path = shop.run / name
    path.write_bytes(mutate(shop.good[name], chance))
    run = RunFolder(shop.run)
    try:
        runs_in_folders(shop.folder / "runs")
        outcomes = {
            attempt(run.read_record),
            attempt(lambda: read_config(run)),
            attempt(run.read_summary),
            attempt(lambda: run.read_result("fold-00")),
            attempt(lambda: read_state(run)),
        }
    finally:
        path.write_bytes(shop.good[name])
    return REFUSED if REFUSED in outcomes else READ


def overrides(shop: Workshop, chance: random.Random) -> str:
    words = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        sign = chance.choice(("", "", "", "+", "++", "~"))
        words.append(f"{sign}{chance.choice(KEYS)}{chance.choice(('=', '=', '=', '==', ''))}")
        words[-1] += chance.choice((*NASTY, "mutag", "abs", "3", "[4,4]", "0.1", "{a:1}"))
    return attempt(lambda: compose("train", words))


# By how many of a hundred cases each kind has.
KINDS: dict[Callable[[Workshop, random.Random], str], int] = {
    tu_zip: 25,
    node_file: 15,
    splits: 10,
    checkpoint: 20,
    run_folder: 20,
    overrides: 10,
}


def attempt(read: Callable[[], object]) -> str:
    try:
        read()
    except UserError:
        return REFUSED
    return READ


@contextmanager
def quiet() -> Iterator[None]:
    """What libraries print about damaged input is theirs."""
    with open(os.devnull, "w") as nowhere:
        out, err, sys.stdout, sys.stderr = sys.stdout, sys.stderr, nowhere, nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err


def fuzz(cases: int, seed: int, folder: Path) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Outcomes by kind, and the failures."""
    with quiet():
        shop = Workshop.make(folder)
    kinds = [kind for kind, share in KINDS.items() for _ in range(share)]
    before = {path for path in folder.rglob("*") if path.is_file()}
    found: Counter[tuple[str, str]] = Counter()
    failures: list[str] = []
    for number in range(cases):
        kind = kinds[number % len(kinds)]
        chance = random.Random(f"{seed}-{number}")
        started = time.monotonic()
        try:
            with quiet():
                outcome = kind(shop, chance)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome = "failed"
            failures.append(f"case {seed}-{number} ({kind.__name__}): {traceback.format_exc()}")
        found[kind.__name__, outcome] += 1
        if time.monotonic() - started > 30:
            failures.append(f"case {seed}-{number} ({kind.__name__}) took more than 30 s")
    own = {folder / name for name in ("case.zip", "case.npz", "case.index", "case.pt")}
    after = {path for path in folder.rglob("*") if path.is_file()}
    failures += [f"{path} was written" for path in sorted(after - before - own)]
    return found, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lpgnn-fuzz-"))
    started = time.monotonic()
    try:
        found, failures = fuzz(arguments.cases, arguments.seed, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for failure in failures[:20]:
        print(failure)
    kinds = {
        kind.__name__: {o: found[kind.__name__, o] for o in (REFUSED, READ, "failed")}
        for kind in KINDS
    }
    seconds = round(time.monotonic() - started)
    print(json.dumps({"cases": arguments.cases, "seed": arguments.seed, "seconds": seconds}))
    print(json.dumps(kinds))
    print(f"{len(failures)} failures in {arguments.cases} cases.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
