"""The dashboard's first page: MLflow's table of runs with the columns that matter, best run first.

MLflow's page keeps saved views as tags of the experiment, `mlflow.sharedViewState.<key>`, and opens
the one that `viewStateShareKey` in its address names. A view is a name, its times and, as JSON, the
state of the page, whose words are those of MLflow's own code (3.16 and later).
"""

from __future__ import annotations

import json

from lpgnn_cli.metrics import TEST, VIOLATION_MEAN
from lpgnn_cli.runsummary import HONEST_ACCURACY, PERSISTENT_ACCURACY

# Of an MLflow run, which unit it is of.
UNIT_TAG = "lpgnn.unit"
KEY = "lpgnn"
TAG = f"mlflow.sharedViewState.{KEY}"
# Widths of columns in pixels, in the order of the table, wide enough for their headings.
WIDTHS = {
    "attributes.`Run Name`": 205,
    f"metrics.`{HONEST_ACCURACY}`": 160,
    f"metrics.`{PERSISTENT_ACCURACY}`": 180,
    f"metrics.`{VIOLATION_MEAN.on(TEST)}`": 138,
    "params.`dataset.name`": 105,
    "params.`propagation.name`": 120,
    "params.`aggregator.name`": 118,
    "params.`g.name`": 80,
    "params.`layers`": 70,
    "attributes.`Dataset`": 220,
    "attributes.`Models`": 220,
}


def saved_view() -> str:
    """The value of the tag."""
    columns = list(WIDTHS)
    state = {
        # Runs, not their units, which the page of a run lists.
        "searchFilter": f"tags.`{UNIT_TAG}` IS NULL",
        "orderByKey": f"metrics.`{HONEST_ACCURACY}`",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns[1:],
        "columnOrder": columns,
        "columnWidths": WIDTHS,
    }
    # A time that is always the same: whoever finds the tag as it is has nothing to write.
    view = {"name": "Training runs", "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)}
    return json.dumps(view)


def address(server: str, experiment_id: str) -> str:
    """Where the view is, on a server whose experiment has the tag."""
    parameters = f"workflowType=machine_learning&viewStateShareKey={KEY}"
    return f"{server.rstrip('/')}/#/experiments/{experiment_id}/runs?{parameters}"
