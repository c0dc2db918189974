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
    """The address of a dashboard that `lpgnn ui` has started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lpgnn_cli", "ui"], stdout=subprocess.PIPE, text=True
    )
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
    trainer = make_trainer(name="ten-folds", units=10, epochs=20)
    trainer.train()
    trainer.finish()
    Mirror(trainer.run, default_uri(), "lpgnn").send(ended=True)
    return trainer


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


def test_the_experiment_shows_the_parent_and_its_ten_folds(
    mirrored: FakeTrainer, dashboard: str, browser: Any
) -> None:
    client = open_client(default_uri())
    experiment = present(client.get_experiment_by_name("lpgnn")).experiment_id
    (parent,) = client.search_runs([experiment], "tags.`mlflow.runName` = 'ten-folds'")
    folds = [f"fold-{i:02d}" for i in range(10)]
    try:
        browser.get(f"{dashboard}/#/experiments/{experiment}/runs")
        wait_for_text(browser, "ten-folds")
        expand_the_parent(browser)
        wait_for_text(browser, "ten-folds", *folds)
        keep_screenshot(browser, "experiment.png")

        browser.get(f"{dashboard}/#/experiments/{experiment}/runs/{parent.info.run_id}")
        accuracy = mirrored.run.read_summary()["cv/accuracy_mean"]
        wait_for_text(browser, "cv/accuracy_mean", f"{accuracy:.6f}"[:6], *folds)
        scroll_to(browser, "cv/accuracy_mean")
        keep_screenshot(browser, "parent.png")
    except Exception:
        keep_screenshot(browser, "failure.png")
        raise


def scroll_to(browser: Any, link: str) -> None:
    element = browser.find_element("link text", link)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


def expand_the_parent(browser: Any) -> None:
    button = "[role=row] button[data-component-id*=runnamecellrenderer]"
    browser.find_element("css selector", button).click()
