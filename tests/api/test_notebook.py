"""examples/quickstart.ipynb runs from top to bottom, and is kept without what it printed."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICKSTART = EXAMPLES / "quickstart.ipynb"

pytestmark = [
    # Of the libraries that notebooks are made of, and of the loop that they leave behind.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_it_is_kept_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra [test]")
    notebook = nbformat.read(QUICKSTART, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
@pytest.mark.ci
def test_it_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra [test]")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra [test]")
    notebook = nbformat.read(QUICKSTART, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/png") == 2
    assert kinds.count("text/html") == 2
    text = "".join(output.get("text", "") for output in outputs)
    assert "of 30 necklaces" in text
    assert not [output for output in outputs if output.get("name") == "stderr"]
