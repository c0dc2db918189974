"""The dashboard of `lpgnn ui` in a real browser: `make test-ui` installs what it needs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot

from lpgnn_cli.reporting.report import write_report
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.mirror import Mirror
from lpgnn_cli.tracking.store import default_uri, open_client

from ..conftest import present
from .conftest import MakeTrainer
from .fake_trainer import FakeTrainer

pytestmark = [
    pytest.mark.ui,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="no Chromium with its driver: make test-ui installs them",
    ),
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1700,1200",
)
SCREENSHOTS = Path(__file__).parents[2] / "test-artifacts"


@pytest.fixture
def dashboard(mirrored: FakeTrainer) -> Iterator[str]:
    """The first page of a dashboard that `lpgnn ui` has started."""
    command = [sys.executable, "-m", "lpgnn_cli", "ui", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    address = ""
    for line in process.stdout:
        if line.startswith("Dashboard: "):
            address = line.split()[1]
            break
    assert address
    yield address
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="make test-ui installs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def mirrored(make_trainer: MakeTrainer, runs: Path, empty_store: Path) -> FakeTrainer:
    """A run of ten folds in the store of the dashboard."""
    shutil.copy(empty_store, runs / "mlflow.db")
    # The worse one is the newer one.
    for name, epochs in (("ten-folds", 20), ("too-short", 3)):
        trainer = make_trainer(name=name, units=10, epochs=epochs)
        with trainer.run.config_path.open("a") as config:
            config.write(f"name: {name}\n")
        trainer.train()
        trainer.finish()
        draw(trainer.run)
        Mirror(trainer.run, default_uri(), "lpgnn").send(ended=True)
        if name == "ten-folds":
            better = trainer
    return better


def draw(run: RunFolder) -> None:
    """A picture, and a report that shows it."""
    figure = pyplot.figure(figsize=(2, 1))
    figure.savefig(run.figures / "accuracy.png")
    pyplot.close(figure)
    write_report(run)


def wait_for_text(browser: Any, *texts: str, seconds: float = 90) -> str:
    """The text of the page, once it shows all of these."""
    shown = ""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        shown = browser.execute_script("return document.body ? document.body.innerText : ''")
        if all(text in shown for text in texts):
            return str(shown)
        time.sleep(0.5)
    raise AssertionError(f"not on the page: {[t for t in texts if t not in shown]}\n{shown}")


def keep_screenshot(browser: Any, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    assert browser.save_screenshot(str(SCREENSHOTS / name))
    assert os.path.getsize(SCREENSHOTS / name) > 10_000


HEADINGS = [
    "honest/accuracy_mean",
    "persistent/accuracy_mean",
    "test/violation_mean",
    "dataset.name",
    "propagation.name",
    "aggregator.name",
    "g.name",
    "layers",
]


def test_the_first_page_is_the_table_of_runs_with_the_best_one_first(
    mirrored: Any, dashboard: str, browser: Any
) -> None:
    accuracy = mirrored.run.read_summary()["honest/accuracy_mean"]
    try:
        browser.get(dashboard)
        close_the_assistant(browser)
        shown = wait_for_text(browser, "ten-folds", "too-short", f"{accuracy:.6f}"[:6])
        keep_screenshot(browser, "first-page.png")
        places = [left_edge(browser, heading) for heading in HEADINGS]
        assert places == sorted(places)
        assert shown.index("ten-folds") < shown.index("too-short")
        # Units are on the page of their run.
        assert "fold-00" not in shown
    except Exception:
        keep_screenshot(browser, "failure.png")
        raise


def left_edge(browser: Any, heading: str) -> float:
    script = """
        const found = [...document.querySelectorAll('.ag-header-cell')]
            .find(cell => cell.innerText.trim() === arguments[0]);
        return found ? found.getBoundingClientRect().left : -1;
    """
    place = float(browser.execute_script(script, heading))
    assert place >= 0, f"no column {heading}"
    return place


def close_the_assistant(browser: Any) -> None:
    """MLflow opens it once, on the first visit."""
    wait_for_text(browser, "MLflow Assistant")
    browser.execute_script(
        "localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false'); location.reload()"
    )


def test_the_experiment_shows_the_parent_and_its_ten_folds(
    mirrored: FakeTrainer, dashboard: str, browser: Any
) -> None:
    server = dashboard.partition("/#")[0]
    client = open_client(default_uri())
    experiment = present(client.get_experiment_by_name("lpgnn")).experiment_id
    (parent,) = client.search_runs([experiment], "tags.`mlflow.runName` = 'ten-folds'")
    folds = [f"fold-{i:02d}" for i in range(10)]
    try:
        browser.get(f"{server}/#/experiments/{experiment}/runs")
        wait_for_text(browser, "ten-folds")
        expand_the_parent(browser)
        wait_for_text(browser, "ten-folds", *folds)
        keep_screenshot(browser, "experiment.png")

        browser.get(f"{server}/#/experiments/{experiment}/runs/{parent.info.run_id}")
        accuracy = mirrored.run.read_summary()["cv/accuracy_mean"]
        wait_for_text(browser, "cv/accuracy_mean", f"{accuracy:.6f}"[:6], *folds)
        assert "last epoch (honest)" in wait_for_text(browser, "last epoch (honest)")
        wait_for_the_picture(browser)
        scroll_to(browser, "cv/accuracy_mean")
        keep_screenshot(browser, "parent.png")
    except Exception:
        keep_screenshot(browser, "failure.png")
        raise


def wait_for_the_picture(browser: Any) -> None:
    """That of the description, which the server has among the artifacts of the run."""
    script = """
        return [...document.images].some(i => i.src.includes('get-artifact') && i.naturalWidth > 0)
    """
    deadline = time.monotonic() + 30
    while not browser.execute_script(script):
        assert time.monotonic() < deadline, "the picture is not shown"
        time.sleep(0.5)


def scroll_to(browser: Any, link: str) -> None:
    element = browser.find_element("link text", link)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


def expand_the_parent(browser: Any) -> None:
    button = "[role=row] button[data-component-id*=runnamecellrenderer]"
    browser.find_element("css selector", button).click()
