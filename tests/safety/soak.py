"""`make soak`: what a long life brings, at random moments; prints one JSON line per kind of fault.

    kills    a run is killed or signalled at random moments and resumed until it has ended; the
             figures must be those of a run that nobody touched, to the last bit
    sweep    a sweep with jobs that fail, crash and are killed, itself killed in between
    disk     a run on a disk that is filled at random moments, and emptied again
    server   an MLflow server that is killed while runs are sent to it, and started again
    memory   20,000 epochs of one run, whose memory must not grow

The first has all of `--minutes`, and the others come one after another beside it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LPGNN = [sys.executable, "-m", "lpgnn_cli"]
SABOTEUR = Path(__file__).resolve().parents[1] / "sweep" / "saboteur.py"
SOBER = ["tracking=none", "threads=1", "figures=false", "quiet=true", "device=cpu"]
TASK = ["dataset=clique", "dataset.graphs=30", "state=[8]", "aggregator.dropout=0.2"]
UNITS = 2
TASK += [
    f"protocol.seeds={UNITS}",
    "protocol.workers=2",
    "protocol.patience=99999",
    "checkpoint_every=7",
]
# On a machine that has time for it; `--patience` is for one that has not.
HANG_SECONDS = 30.0
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
# A run may end well if all its units were as near to their end as this when it was signalled.
EPOCHS, ALMOST = 400, 100

Outcome = dict[str, object]


class Failure(AssertionError):
    """A promise that was not kept."""


def environment(root: Path) -> dict[str, str]:
    own = {"LPGNN_RUNS": str(root), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    return {**os.environ, **own}


def hear_signals() -> None:
    """What a shell starts in the background, or behind `nohup`, has some of them ignored.

    So would every run that is started here; one that is listened to is as usual in children.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*LPGNN, *words],
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], seconds: float) -> str:
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        raise Failure(f"it hung for more than {seconds:.0f} s: {said}") from None
    if "Traceback" in said:
        raise Failure(f"a traceback: {said}")
    return said


def ends_within(process: subprocess.Popen[str], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return process.poll() is not None


def only_run(root: Path) -> Path:
    (record,) = root.glob("train/*/*/run.json")
    return record.parent


def figures_of(root: Path) -> dict[str, list[dict[str, str]]]:
    """Those of the only run, where it has begun."""
    return figures(only_run(root)) if list(root.glob("train/*/*/run.json")) else {}


def epochs_done(root: Path) -> int:
    """By the unit that is furthest behind."""
    units = figures_of(root)
    return min(map(len, units.values())) if len(units) == UNITS else 0


def figures(run: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for path in sorted(run.glob("units/*/metrics.csv")):
        with path.open(newline="") as file:
            found[path.parent.name] = [
                {k: v for k, v in row.items() if k != "time"} for row in csv.DictReader(file)
            ]
    return found


def soak_kills(folder: Path, until: float, patience: float, chance: random.Random) -> Outcome:
    words = ["train", *SOBER, *TASK, f"epochs={EPOCHS}"]
    started = time.monotonic()
    finish(start(folder / "whole", *words), 600)
    # From the start of Python to the end of the run, as far as anybody knows.
    span = time.monotonic() - started
    expected = figures_of(folder / "whole")
    counts: dict[str, int] = {}
    runs = late = 0
    slowest = 0.0
    while time.monotonic() < until:
        print(json.dumps({"fault": "kills so far", **counts, "runs": runs}), file=sys.stderr)
        root = folder / f"run-{runs}"
        process = start(root, *words)
        longest = span
        while True:
            before = epochs_done(root)
            if not ends_within(process, chance.uniform(0.1, 1.0) * longest):
                number = chance.choice(SIGNALS)
                done = epochs_done(root)
                # A machine that has become slower would never get to the end.
                longest = span if done > before else 1.2 * longest
                span *= 1.05
                os.killpg(process.pid, number)
                counts[number.name] = counts.get(number.name, 0) + 1
                sent = time.monotonic()
                said = finish(process, patience)
                slowest = max(slowest, time.monotonic() - sent)
                if process.returncode not in (0, -number, 128 + number):
                    raise Failure(f"{number.name} gave {process.returncode}: {said}")
                if process.returncode == 0:
                    late += 1
                    if done < EPOCHS - ALMOST:
                        raise Failure(f"{number.name} was lost at epoch {done}: {said}")
            else:
                said = finish(process, patience)
                if process.returncode != 0:
                    raise Failure(f"a resumed run ended with {process.returncode}: {said}")
                # On one that has become faster, every signal would come too late.
                span *= 0.8
                break
            found = list(root.glob("train/*/*/run.json"))
            again = [f"resume={found[0].parent}", "quiet=true"] if found else words[1:]
            process = start(root, "train", *again)
        if figures_of(root) != expected:
            raise Failure("the figures of a resumed run differ")
        shutil.rmtree(root)
        runs += 1
    outcome = {"signals": sum(counts.values()), **counts, "too late to stop it": late}
    outcome["seconds from a signal to the end, at most"] = round(slowest)
    return {**outcome, "runs, all bit-equal": runs}


def finished(root: Path) -> int:
    """How many jobs of the sweep have ended well."""
    return len(list(root.glob("sweep/jobs/*/summary.json")))


def soak_sweep(folder: Path, jobs: int, chance: random.Random) -> Outcome:
    root = folder / "sweep-runs"
    bad = chance.sample(range(jobs), max(3, jobs // 10))
    trouble = {
        "SABOTAGE_RAISE": ",".join(map(str, bad[::2])),
        "SABOTAGE_KILL": ",".join(map(str, bad[1::2])),
        "SABOTAGE_LOG": str(folder / "epochs.log"),
    }
    words = ["dataset=karate", "tracking=none", "layers=1", "state=[4]", "aggregator.hidden=[4]"]
    words += [f"seed=range({jobs})", "epochs=10", "hydra.launcher.workers=2"]
    kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, str(SABOTEUR), "sweep", *words],
            env={**environment(root), **trouble},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        if kills < 3:
            goal = finished(root) + chance.randrange(1, max(2, jobs // 4))
            while process.poll() is None and finished(root) < goal:
                time.sleep(0.2)
        if process.poll() is None and kills < 3:
            kills += 1
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            continue
        said = finish(process, 3600)
        break
    if process.returncode != 1 or f"{len(bad)} of {jobs} jobs failed" not in said:
        raise Failure(f"{len(bad)} of {jobs} jobs should have failed: {said[-2000:]}")
    states = [json.loads(p.read_text())["state"] for p in root.glob("sweep/jobs/*/run.json")]
    if states.count("finished") != jobs - len(bad):
        raise Failure(f"{states.count('finished')} of {jobs - len(bad)} jobs finished")
    return {"jobs": jobs, "failing or crashing": len(bad), "kills of the sweep": kills}


def soak_disk(folder: Path, rounds: int, chance: random.Random) -> Outcome:
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        return {"skipped": "only root may mount a disk"}
    full = 0
    try:
        words = [*SOBER, *TASK[:-1], "checkpoint_every=1", "rescore_mb=0", "epochs=100000"]
        for _ in range(rounds):
            (disk / "ballast").write_bytes(bytes(chance.randrange(1500 << 10, 1950 << 10)))
            process = start(disk, "train", *words)
            said = finish(process, 300)
            if "No space left on device" not in said or len(said.strip().splitlines()) > 40:
                raise Failure(f"a full disk said: {said[-2000:]}")
            full += 1
            (disk / "ballast").unlink()
            for run in disk.glob("train/*/*"):
                left = [p for p in run.rglob(".*.*") if p.suffix[1:].isdecimal()]
                if left:
                    raise Failure(f"temporary files are left: {left}")
            shutil.rmtree(disk / "train", ignore_errors=True)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    return {"full disks": full}


def soak_server(folder: Path, kills: int, chance: random.Random) -> Outcome:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = f"sqlite:///{folder / 'server.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", store, "--artifacts-destination", str(folder / "artifacts")]

    def serve() -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return server
            except OSError:
                time.sleep(0.5)
        raise Failure("the MLflow server does not start")

    root = folder / "tracked"
    words = [w for w in [*SOBER, *TASK] if w != "tracking=none"]
    words += [f"tracking.uri=http://127.0.0.1:{port}", "epochs=3000"]
    server = serve()
    try:
        for _ in range(kills):
            process = start(root, "train", *words)
            time.sleep(chance.uniform(5, 25))
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            finish(process, 300)
            if process.returncode != 0:
                raise Failure(f"a run without its server ended with {process.returncode}")
            server = serve()
        folders = [str(record.parent) for record in root.glob("train/*/*/run.json")]
        finish(start(root, "sync", *folders), 600)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
    for run in map(Path, folders):
        if not json.loads((run / "tracking.json").read_text())["complete"]:
            raise Failure(f"MLflow does not have all of {run}")
    return {"kills of the server": kills, "runs complete in MLflow": len(folders)}


MEMORY = """
import os, resource, sys
from lpgnn_cli.training.fit import UnitFit
from lpgnn_cli.cli import main
page, seen = resource.getpagesize(), {}
epoch_of = UnitFit._epoch
def watched(self, epoch):
    if epoch in (2000, int(sys.argv[1])):
        seen[epoch] = int(open("/proc/self/statm").read().split()[1]) * page >> 10
    return epoch_of(self, epoch)
UnitFit._epoch = watched
assert main(["train", *sys.argv[2:], f"epochs={sys.argv[1]}"]) == 0
print(*seen.values())
"""


def soak_memory(folder: Path, epochs: int) -> Outcome:
    words = [*SOBER, "dataset=karate", "protocol.workers=1", "checkpoint_every=1000"]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(epochs), *words],
        env=environment(folder / "memory"),
        capture_output=True,
        text=True,
        check=True,
    )
    early, late = map(int, done.stdout.splitlines()[-1].split())
    if late - early > 20 << 10:
        raise Failure(f"memory grew from {early} to {late} KiB")
    return {"epochs": epochs, "KiB after 2,000 epochs": early, "KiB at the end": late}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="memory,disk,sweep,server,kills")
    parser.add_argument("--patience", type=float, default=HANG_SECONDS, help="until it is a hang")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=20_000)
    parser.add_argument("--server-kills", type=int, default=5)
    parser.add_argument("--full-disks", type=int, default=10)
    arguments = parser.parse_args()
    hear_signals()
    until = time.monotonic() + 60 * arguments.minutes
    chance, of_kills = random.Random(arguments.seed), random.Random(arguments.seed)
    folder = Path(tempfile.mkdtemp(prefix="lpgnn-soak-"))
    kinds: dict[str, Callable[[], Outcome]] = {
        "memory": lambda: soak_memory(folder, arguments.epochs),
        "disk": lambda: soak_disk(folder, arguments.full_disks, chance),
        "sweep": lambda: soak_sweep(folder, arguments.jobs, chance),
        "server": lambda: soak_server(folder, arguments.server_kills, chance),
        "kills": lambda: soak_kills(folder, until, arguments.patience, of_kills),
    }
    chosen = arguments.only.split(",")

    def holds(name: str) -> bool:
        started = time.monotonic()
        try:
            outcome = kinds[name]()
        except (Failure, subprocess.CalledProcessError) as failure:
            outcome = {"FAILED": str(failure)}
        seconds = round(time.monotonic() - started)
        print(json.dumps({"fault": name, **outcome, "seconds": seconds}), flush=True)
        return "FAILED" not in outcome

    try:
        with ThreadPoolExecutor(1) as beside:
            kills = [beside.submit(holds, name) for name in chosen if name == "kills"]
            others = [holds(name) for name in chosen if name != "kills"]
            failures = [*others, *(future.result() for future in kills)].count(False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{failures} failures; the largest process had {peak} MiB.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
