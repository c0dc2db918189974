"""Past runs, from the run folders or from an MLflow store, in one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lpgnn_cli.runfolder import RUNNING, RunFolder, RunRecord, run_folders
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.tracking.state import read_state

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient


@dataclass(frozen=True)
class PastRun:
    """One run: what `lpgnn runs` shows, filters and sorts."""

    name: str
    started: float
    state: str
    synced: bool
    folder: str
    params: dict[str, str]
    metrics: dict[str, float]
    # The words of its command line: the names by which groups were chosen are here alone.
    argv: list[str]


def runs_in_folders(root: Path) -> tuple[list[PastRun], list[Path]]:
    """The runs below `root`, and the folders whose files cannot be read."""
    runs, unreadable = [], []
    for path in run_folders(root):
        try:
            runs.append(_from_folder(RunFolder(path)))
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            unreadable.append(path)
    return runs, unreadable


def _from_folder(run: RunFolder) -> PastRun:
    record = run.read_record()
    params = read_flat_config(run.config_path)
    summary = run.read_summary()
    return PastRun(
        name=record.name,
        started=record.started,
        state=run.actual_state(record),
        synced=_is_synced(run, record, params),
        folder=str(run.path),
        params=params,
        metrics={k: float(v) for k, v in summary.items() if isinstance(v, int | float)},
        argv=record.argv,
    )


def _is_synced(run: RunFolder, record: RunRecord, params: dict[str, str]) -> bool:
    """Whether MLflow has all of it, as far as it is meant to have it."""
    state = read_state(run)
    if state is not None:
        return state.complete or run.actual_state(record) == RUNNING
    return params.get("tracking.name") != "mlflow"


def parent_runs(client: MlflowClient) -> Iterator[Run]:
    """What lpgnn began in any experiment of the store; the units of a run are its children."""
    from lpgnn_cli.tracking.mirror import RUN_TAG
    from lpgnn_cli.tracking.view import UNIT_TAG

    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    token: str | None = None
    while True:
        page = client.search_runs(
            experiments,
            filter_string=f"tags.`{UNIT_TAG}` IS NULL AND tags.`{RUN_TAG}` LIKE '%'",
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def runs_in_store(uri: str) -> list[PastRun]:
    """The runs of an MLflow store."""
    from lpgnn_cli.tracking.headings import NAME_TAG
    from lpgnn_cli.tracking.store import open_client, reading_store

    with reading_store(uri):
        found = list(parent_runs(open_client(uri)))
    return [
        PastRun(
            name=run.data.tags.get(NAME_TAG, run.info.run_name or ""),
            started=(run.info.start_time or 0) / 1000,
            state=run.data.tags.get("state", RUNNING),
            synced=True,
            folder=run.data.tags.get("folder", ""),
            params=dict(run.data.params),
            metrics=dict(run.data.metrics),
            argv=run.data.tags.get("command", "").split()[1:],
        )
        for run in found
    ]
