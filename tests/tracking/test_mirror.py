"""The mirror against real sqlite stores."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.mirror import Mirror, Sent
from lpgnn_cli.tracking.sender import Sender
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.tracking.store import default_uri, open_client
from lpgnn_cli.tracking.thinning import MOST_POINTS

from ..conftest import present
from .conftest import MakeTrainer

if TYPE_CHECKING:
    from mlflow.entities import Run


@pytest.fixture(autouse=True)
def store(runs: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, runs / "mlflow.db")


def mirror_of(run: RunFolder) -> Mirror:
    return Mirror(run, default_uri(), "lpgnn")


def stored(run: RunFolder) -> tuple[Run, dict[str, Run]]:
    """The parent and the children that the store has, as MLflow's own client finds them."""
    client = open_client(default_uri())
    experiment = present(client.get_experiment_by_name("lpgnn"))
    found = client.search_runs([experiment.experiment_id], max_results=1000)
    parents = [r for r in found if "mlflow.parentRunId" not in r.data.tags]
    assert len(parents) == 1
    parent = parents[0]
    children = [r for r in found if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(children) == len(found) - 1
    by_name = {r.info.run_name: r for r in children}
    assert len(by_name) == len(children)
    return parent, by_name


def history(run: Run, metric: str) -> list[tuple[int, float]]:
    points = open_client(default_uri()).get_metric_history(run.info.run_id, metric)
    return [(point.step, point.value) for point in points]


def rows_of(run: RunFolder, unit: str, metric: str) -> list[tuple[int, float]]:
    return [(int(row["epoch"]), row[metric]) for row in run.read_metrics(unit)]


def test_parent_children_and_complete_curves(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=10, epochs=20)
    trainer.train()
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)

    parent, children = stored(trainer.run)
    assert sorted(children) == [f"fold-{i:02d}" for i in range(10)]
    for name, child in children.items():
        assert child.info.status == "FINISHED"
        for metric in ("train/accuracy", "train/layer0/violation_mean"):
            assert history(child, metric) == rows_of(trainer.run, name, metric)
    assert parent.info.status == "FINISHED"
    assert parent.data.params["aggregator.hidden"] == "[20]"
    assert parent.data.params["lr.multiplier"] == "null"
    assert parent.data.tags["dataset_fingerprint"] == "abc"
    assert parent.data.tags["honest/rule"] == "last epoch"
    # The fake trainer finds from zero 5 percentage points below what it logs.
    means = [parent.data.metrics[f"{kind}/accuracy_mean"] for kind in ("honest", "persistent")]
    assert means[0] == pytest.approx(means[1] - 0.05)
    figures = children["fold-03"].data.metrics
    assert figures["persistent/accuracy"] == figures["selected/test/accuracy"]
    assert figures["honest/accuracy"] == pytest.approx(figures["persistent/accuracy"] - 0.05)


def test_long_curves_go_thinned_with_their_ends_and_extremes(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=2500)
    with trainer.run.config_path.open("a") as config:
        config.write("epochs: 2500\n")
    trainer.train()
    path = trainer.run.unit("fold-00") / "metrics.csv"
    lines = path.read_text().splitlines()
    cells = lines[1300].split(",")
    place = lines[0].split(",").index("test/accuracy")
    cells[place] = "0.99"
    path.write_text("\n".join([*lines[:1300], ",".join(cells), *lines[1301:], ""]))
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)
    parent, children = stored(trainer.run)
    rows = rows_of(trainer.run, "fold-00", "test/accuracy")
    found = history(children["fold-00"], "test/accuracy")
    assert set(found) <= set(rows)
    assert len(found) <= MOST_POINTS
    assert {rows[0], rows[-1], (1300, 0.99)} <= set(found)
    assert children["fold-00"].data.metrics["test/accuracy"] == rows[-1][1]
    assert 0 < len(history(parent, "test/accuracy_mean")) <= MOST_POINTS
    assert mirror_of(trainer.run).send(ended=True) == Sent(metrics=0, artifacts=0)


def test_a_single_unit_has_no_spread_to_send(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=3)
    trainer.train()
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)

    parent, _ = stored(trainer.run)
    assert len(history(parent, "test/accuracy_mean")) == 3
    assert history(parent, "test/accuracy_std") == []
    assert parent.data.metrics["cv/accuracy_std"] == 0


def test_mean_and_std_of_the_parent_are_those_of_the_units(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=10, epochs=20)
    trainer.train()
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)

    parent, _ = stored(trainer.run)
    curves = [rows_of(trainer.run, unit.name, "test/accuracy") for unit in trainer.record.units]
    means, stds = [], []
    for points in zip(*curves, strict=True):
        values = [value for _, value in points]
        mean = sum(values) / len(values)
        means.append(mean)
        stds.append((sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5)
    sent_means = [value for _, value in history(parent, "test/accuracy_mean")]
    sent_stds = [value for _, value in history(parent, "test/accuracy_std")]
    assert sent_means == pytest.approx(means)
    assert sent_stds == pytest.approx(stds)
    best = max(range(len(means)), key=means.__getitem__)
    assert parent.data.metrics["cv/best_epoch"] == best + 1
    assert parent.data.metrics["cv/accuracy_mean"] == pytest.approx(means[best])
    assert parent.data.metrics["cv/accuracy_std"] == pytest.approx(stds[best])


def test_the_curves_of_the_parent_go_once_while_figures_are_made(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=5)
    mirror = mirror_of(trainer.run)
    trainer.train()
    mirror.send(ended=False)
    parent, _ = stored(trainer.run)
    assert history(parent, "test/accuracy_mean") == []
    summarise(trainer.run)
    mirror.send(ended=False)
    parent, _ = stored(trainer.run)
    assert [step for step, _ in history(parent, "test/accuracy_mean")] == [1, 2, 3, 4, 5]
    trainer.finish()
    assert mirror.send(ended=True).metrics > 0
    parent, _ = stored(trainer.run)
    assert len(history(parent, "test/accuracy_mean")) == 5


def test_files_are_kept_as_artifacts(make_trainer: MakeTrainer, runs: Path) -> None:
    trainer = make_trainer(units=1, epochs=2)
    trainer.train()
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)

    parent, children = stored(trainer.run)
    client = open_client(default_uri())
    names = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert {"config.yaml", "folds.csv", "curves.csv", "figures"} <= names
    child = children["fold-00"].info.run_id
    assert {"metrics.csv", "last.pt"} <= {file.path for file in client.list_artifacts(child)}
    assert (runs / "mlartifacts").is_dir()
    assert list(Path.cwd().iterdir()) == []


def test_a_second_pass_sends_nothing(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=5)
    trainer.train()
    trainer.finish()
    assert mirror_of(trainer.run).send(ended=True).metrics > 0
    assert mirror_of(trainer.run).send(ended=True) == Sent(metrics=0, artifacts=0)


def test_passes_while_the_run_grows_send_each_row_once(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=7)
    mirror = mirror_of(trainer.run)
    trainer.train(lambda unit, epoch: mirror.send(ended=False))
    trainer.finish()
    mirror.send(ended=True)
    _, children = stored(trainer.run)
    for name, child in children.items():
        assert history(child, "train/loss") == rows_of(trainer.run, name, "train/loss")


def test_an_acknowledgement_that_got_lost_duplicates_nothing(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call reaches the store, and its first answer is lost on the way back."""
    lost = set()
    for name in ("create_run", "metrics", "params", "tags", "artifact", "status"):
        real = getattr(Sender, name)

        def loses_the_answer(self: Sender, *args: Any, real: Any = real, name: str = name) -> Any:
            points = list(args[1]) if name == "metrics" else None
            answer = real(self, *(args if points is None else (args[0], points)))
            key = (name, str(args[1:]) if points is None else str(points))
            if key not in lost:
                lost.add(key)
                raise ConnectionError("the answer is lost")
            return answer

        monkeypatch.setattr(Sender, name, loses_the_answer)
    trainer = make_trainer(units=2, epochs=3)
    trainer.train()
    trainer.finish()
    mirror = mirror_of(trainer.run)
    for _ in range(100):
        try:
            mirror.send(ended=True)
        except ConnectionError:
            assert present(read_state(trainer.run)).state == "unreachable"
        else:
            break
    assert len(lost) > 10
    state = present(read_state(trainer.run))
    assert state.complete
    assert state.state == "ok"
    _, children = stored(trainer.run)
    assert len(children) == 2
    for name, child in children.items():
        assert history(child, "test/accuracy") == rows_of(trainer.run, name, "test/accuracy")


def test_a_twin_that_appears_late_is_removed(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=2)
    mirror = mirror_of(trainer.run)
    trainer.train()
    mirror.send(ended=False)
    parent, _ = stored(trainer.run)
    client = open_client(default_uri())
    client.create_run(parent.info.experiment_id, tags={"lpgnn.run_id": trainer.record.id})
    trainer.finish()
    mirror.send(ended=True)
    found, children = stored(trainer.run)
    assert found.info.run_id == parent.info.run_id
    assert len(children) == 1


def test_a_resumed_run_that_computes_the_same_again_goes_on(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=10)
    unit = trainer.record.units[0]
    trainer.train_unit(unit, last=6)
    trainer.interrupt()
    mirror_of(trainer.run).send(ended=True)
    before, children = stored(trainer.run)
    assert before.info.status == "KILLED"

    mirror = mirror_of(trainer.run)
    trainer.train_unit(unit, lambda unit, epoch: mirror.send(ended=False), first=4)
    trainer.finish()
    mirror.send(ended=True)
    after, children_after = stored(trainer.run)
    assert after.info.run_id == before.info.run_id
    assert after.info.status == "FINISHED"
    assert children_after["fold-00"].info.run_id == children["fold-00"].info.run_id
    assert history(children_after["fold-00"], "train/loss") == rows_of(
        trainer.run, "fold-00", "train/loss"
    )


def test_a_resumed_run_that_computes_others_replaces_its_child(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=10)
    first, second = trainer.record.units
    mirror = mirror_of(trainer.run)
    trainer.train_unit(first)
    trainer.train_unit(second, last=6)
    mirror.send(ended=False)
    trainer.train_unit(second, first=4, scale=0.5)
    trainer.finish()
    mirror.send(ended=True)
    _, children = stored(trainer.run)
    for name, child in children.items():
        assert history(child, "train/loss") == rows_of(trainer.run, name, "train/loss")


def test_a_run_that_was_killed_is_killed_in_the_store(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=2, epochs=10)
    trainer.train_unit(trainer.record.units[0], last=3)
    mirror_of(trainer.run).send(ended=True)
    parent, children = stored(trainer.run)
    assert parent.info.status == "KILLED"
    assert {c.info.status for c in children.values()} == {"KILLED"}
    assert list(children) == ["fold-00"]


def test_a_new_store_gets_everything_again(
    make_trainer: MakeTrainer, runs: Path, empty_store: Path
) -> None:
    trainer = make_trainer(units=1, epochs=3)
    trainer.train()
    trainer.finish()
    mirror_of(trainer.run).send(ended=True)
    other = f"sqlite:///{runs / 'other.db'}"
    shutil.copy(empty_store, runs / "other.db")
    Mirror(trainer.run, other, "elsewhere").send(ended=True)
    client = open_client(other)
    experiment = present(client.get_experiment_by_name("elsewhere"))
    assert len(client.search_runs([experiment.experiment_id])) == 2


def test_long_params_and_wide_rows_fit_the_limits(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=2)
    many = "".join(f"k{i}: {i}\n" for i in range(250))
    trainer.run.config_path.write_text(f"long: {'x' * 7000}\n{many}")
    wide = {f"layer{i}/violation_mean": float(i) for i in range(1500)}
    path = trainer.run.unit("fold-00") / "metrics.csv"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        writer = csv.DictWriter(file, ["epoch", "time", *wide], lineterminator="\n")
        writer.writeheader()
        writer.writerow({"epoch": 1, "time": 1, **wide})
    assert mirror_of(trainer.run).send(ended=False).metrics == 1500
    parent, children = stored(trainer.run)
    assert len(parent.data.params["long"]) == 6000
    assert len(parent.data.params) == 251
    assert len(children["fold-00"].data.metrics) == 1500


def test_values_that_are_not_finite_are_sent(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=2)
    path = trainer.run.unit("fold-00") / "metrics.csv"
    path.parent.mkdir(parents=True)
    path.write_text("epoch,time,train/loss\n1,1000,inf\n2,1001,nan\n3,1002,")
    assert mirror_of(trainer.run).send(ended=False).metrics == 2
