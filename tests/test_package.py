"""What is shipped, and what the process is told at start-up."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from lpgnn_cli.allocator import tune_allocator
from lpgnn_cli.config.compose import conf_dir
from lpgnn_cli.idle import SPINS, sleep_soon

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    place = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place)]
    done = subprocess.run([*words, str(REPOSITORY)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = place.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_carries_conf_and_data_and_nothing_of_the_workshop(
    wheel: zipfile.ZipFile,
) -> None:
    names = set(wheel.namelist())
    for path in conf_dir().rglob("*.yaml"):
        assert f"lpgnn_cli/conf/{path.relative_to(conf_dir()).as_posix()}" in names
    source = REPOSITORY / "src"
    for path in (source / "lpgnn_cli").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(source).as_posix() in names
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"lpgnn_cli", "hydra_plugins"}


def test_a_plain_install_never_needs_a_compiler(wheel: zipfile.ZipFile) -> None:
    metadata = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    required = [
        line
        for line in wheel.read(metadata).decode().splitlines()
        if line.startswith("Requires-Dist") and "extra ==" not in line
    ]
    assert any("torch<3" in line for line in required)
    assert not any("scatter" in line for line in required)


def test_constraints_pin_everything_the_project_names() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pins = {}
    for line in (REPOSITORY / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            pins[name.lower().replace("_", "-")] = version
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["lint"], *extras["scatter"]]
    names = {
        requirement.split(">")[0].lower().replace("_", "-")
        for requirement in wanted
        if not requirement.startswith(project["name"])
    }
    assert names - pins.keys() == set()
    assert "+" not in pins["torch"]  # a local version such as +cpu is not on every registry


def test_the_allocator_keeps_large_blocks_on_glibc_and_is_harmless_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    glibc = sys.platform.startswith("linux") and platform.libc_ver()[0] == "glibc"
    assert tune_allocator() is glibc
    monkeypatch.setattr(sys, "platform", "darwin")
    assert tune_allocator() is False


def test_idle_threads_sleep_soon_unless_the_user_wants_them_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        # Set first, so that it is unset again in the end.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    sleep_soon()
    assert os.environ["GOMP_SPINCOUNT"] == SPINS
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    sleep_soon()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    sleep_soon()
    assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what OpenMP has read")
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_openmp_is_told_before_it_is_loaded(command: str, tmp_path: Path) -> None:
    """It reads its settings when torch is imported, and shows them then."""
    unset = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment |= {"OMP_DISPLAY_ENV": "verbose", "LPGNN_RUNS": str(tmp_path)}
    words = ["dataset=karate", "epochs=1", "tracking=none", "figures=false", "quiet=true"]
    done = subprocess.run(
        [sys.executable, "-m", "lpgnn_cli", command, *words],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"GOMP_SPINCOUNT = '{SPINS}'" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts Linux page faults")
def test_a_freed_block_is_used_again_without_page_faults() -> None:
    script = (
        "import resource\n"
        "from lpgnn_cli.allocator import tune_allocator\n"
        "tuned = tune_allocator()\n"
        "def faults():\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def blocks(): [bytearray(20_000_000) for _ in range(5)]\n"
        "for _ in range(3): blocks()\n"
        "before = faults()\n"
        "for _ in range(20): blocks()\n"
        "print(int(tuned), faults() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    tuned, faults = map(int, done.stdout.split())
    if not tuned:
        pytest.skip("not glibc")
    # 20 MB are about 4,900 pages; untuned, most of the 100 blocks fault them in again.
    assert faults < 2_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's account of memory")
def test_very_large_blocks_leave_no_gaps() -> None:
    """Tensors of 48 MB, of which every second one is freed, and then a larger one."""
    script = (
        "import torch\n"
        "from lpgnn_cli.allocator import tune_allocator\n"
        "tuned = tune_allocator()\n"
        "def resident():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith('VmRSS'))\n"
        "before = resident()\n"
        "blocks = [torch.ones(12_000_000) for _ in range(8)]\n"
        "del blocks[::2]\n"
        "larger = torch.ones(18_000_000)\n"
        "print(int(tuned), resident() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    tuned, rise = map(int, done.stdout.split())
    if not tuned:
        pytest.skip("not glibc")
    # Four of 48 MB and one of 72 MB; with the gaps it would be 456 MB.
    assert rise < 320_000_000
