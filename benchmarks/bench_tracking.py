"""What logging to MLflow costs: `lpgnn train dataset=mutag` with tracking and without, in turns.

    python benchmarks/bench_tracking.py [--repeats N] [settings of lpgnn train ...]

Wall time is what a person waits; CPU time counts all processes, so it also shows what an idle core
hides. The store is made by a short run before anything is measured, as it is once in a project.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile

from whole_command import Spent, run_lpgnn

TARGET = 5.0


def measure(settings: list[str], tracking: str, folder: str) -> Spent:
    words = ["train", "dataset=mutag", "quiet=true", f"tracking={tracking}", *settings]
    return run_lpgnn(words, {"LPGNN_RUNS": folder})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    arguments, settings = parser.parse_known_args()
    seconds: dict[str, list[Spent]] = {"none": [], "mlflow": []}
    with tempfile.TemporaryDirectory() as folder:
        measure([*settings, "epochs=2"], "mlflow", folder)
        for repeat in range(arguments.repeats):
            # Whichever goes first, so that a machine that slows down favours neither.
            for tracking in sorted(seconds, reverse=repeat % 2 == 1):
                wall, cpu = spent = measure(settings, tracking, folder)
                seconds[tracking].append(spent)
                print(f"tracking={tracking:<7} wall {wall:7.1f} s   CPU {cpu:7.1f} s", flush=True)
    for index, kind in enumerate(("wall", "CPU")):
        without = statistics.median(run[index] for run in seconds["none"])
        tracked = statistics.median(run[index] for run in seconds["mlflow"])
        share = 100 * (tracked - without) / tracked
        print(f"logging takes {share:.1f} % of the {kind} time ({without:.1f} -> {tracked:.1f} s)")
    print(f"target: at most {TARGET:.0f} % of the wall time")


if __name__ == "__main__":
    main()
