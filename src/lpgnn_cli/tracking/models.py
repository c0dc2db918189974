"""Trained networks as MLflow models: of every unit its own, of the run all of them together.

A model is a folder of plain files; no code is pickled:

    MLmodel, requirements.txt, input_example.json
    data/units/<unit>/model.pt    our own checkpoint, one per network: `find_networks` lists them

`mlflow.pyfunc.load_model` reads it through `lpgnn_cli.api.pyfunc`, and whoever downloads the folder
can use the checkpoints as any other.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpgnn_cli.runfolder import MODEL, RunFolder, RunRecord
from lpgnn_cli.stored import read_json
from lpgnn_cli.version import __version__

if TYPE_CHECKING:
    from mlflow.models import ModelSignature
    from mlflow.tracking import MlflowClient

LOADER = "lpgnn_cli.api.pyfunc"
DATA = "data"
DEFAULT_ALIAS = "newest"
EXAMPLE = "input_example.json"
# How a graph may be given: see `data.node_link`.
INPUTS = ("nodes", "edges", "links", "directed", "features", "source", "target", "arc_labels")


def find_networks(model: Path) -> list[Path]:
    """The checkpoints of a model folder, in the order of its units."""
    return sorted(model.glob(f"{DATA}/units/*/{MODEL}"))


def model_location(client: MlflowClient, address: str) -> str:
    """Where the files of `models:/<id>`, `models:/NAME/1` or `models:/NAME@ALIAS` are.

    MLflow itself would ask whatever registry is its default, not the one of this client.
    """
    name = address.removeprefix("models:/")
    if "@" in name:
        return str(client.get_model_version_by_alias(*name.rsplit("@", 1)).source)
    if "/" in name:
        return str(client.get_model_version(*name.rsplit("/", 1)).source)
    return str(client.get_logged_model(name).artifact_location)


def wants_models(record: RunRecord, settings: Mapping[str, str]) -> bool:
    """Whether the networks of a run go to MLflow as models: see conf/tracking/mlflow.yaml."""
    wish = settings.get("tracking.models", "none")
    of_sweep = record.parent_run_id is not None
    return record.command == "train" and (wish == "all" or (wish == "auto" and not of_sweep))


def registered_as(settings: Mapping[str, str]) -> tuple[str, str]:
    """Name and alias of the registered model; no name where none is asked for."""
    wish = settings.get("tracking.register", "null")
    name, _, alias = ("" if wish == "null" else wish).partition("@")
    return name, alias or DEFAULT_ALIAS


@contextmanager
def model_folder(
    run: RunFolder, record: RunRecord, units: Sequence[str], model_id: str, run_id: str
) -> Iterator[Path]:
    """The folder of a model, to be sent."""
    from mlflow.models import Model

    with tempfile.TemporaryDirectory(prefix="lpgnn-model-") as temporary:
        folder = Path(temporary)
        for unit in units:
            target = folder / DATA / "units" / unit
            target.mkdir(parents=True)
            shutil.copyfile(run.unit(unit) / MODEL, target / MODEL)
        described = read_json(run.data_path) if run.data_path.is_file() else {}
        model = Model(run_id=run_id, model_id=model_id, signature=_signature(described))
        versions = record.versions
        model.add_flavor(
            "python_function",
            loader_module=LOADER,
            data=DATA,
            python_version=versions.get("python", ""),
            env={"virtualenv": "requirements.txt"},
        )
        if example := described.get("example"):
            (folder / EXAMPLE).write_text(json.dumps([example]))
            model.saved_input_example_info = {"artifact_path": EXAMPLE, "type": "json_object"}
        (folder / "requirements.txt").write_text(_requirements(versions))
        model.save(str(folder / "MLmodel"))
        yield folder


def _requirements(versions: Mapping[str, str]) -> str:
    """What it was trained with; torch without the name of its build, which no index has."""
    known = {
        name: versions[name].partition("+")[0] for name in ("torch", "numpy") if name in versions
    }
    lines = [f"lpgnn-cli=={__version__}", *(f"{name}=={text}" for name, text in known.items())]
    return "".join(f"{line}\n" for line in lines)


def _signature(described: Mapping[str, Any]) -> ModelSignature:
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec
    from mlflow.types.schema import AnyType, Array

    anything = AnyType()  # type: ignore[no-untyped-call]
    rows: list[ColSpec | TensorSpec] = [ColSpec(anything, n, required=False) for n in INPUTS]
    task, _, level = str(described.get("targets", "classes of graphs")).partition(" of ")
    place = ["graph"] if level == "graphs" else ["graph", "node"]
    answers: list[ColSpec | TensorSpec] = [ColSpec(DataType.long, name) for name in place]
    if task == "numbers":
        answers.append(ColSpec(Array(DataType.double), "values"))
    else:
        one = DataType.long if task == "classes" else Array(DataType.long)
        answers += [ColSpec(one, "class"), ColSpec(Array(DataType.double), "probabilities")]
    return ModelSignature(inputs=Schema(rows), outputs=Schema(answers))
