"""The `lpgnn` command as users meet it: words in; lines, exit codes and little else out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.commands import COMMANDS
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.version import __version__

HEAVY = ("torch", "mlflow", "sklearn", "matplotlib", "networkx", "scipy", "hydra", "rich")


def run(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(argv)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy_and_are_quick(flag: str) -> None:
    script = (
        "import sys, time\n"
        "from lpgnn_cli.cli import main\n"
        f"code = main([{flag!r}])\n"
        f"heavy = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "print(heavy, file=sys.stderr)\n"
        "print(time.process_time(), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    heavy, seconds = done.stderr.splitlines()
    assert done.returncode == 0
    assert heavy == "[]"
    assert float(seconds) < 0.5


def test_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"], capsys) == (0, f"lpgnn {__version__}\n", "")


def test_help_lists_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["--help"], capsys)
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert listed == list(COMMANDS)
    assert run([], capsys)[1] == out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_answers_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main([name, "--help"])
    except SystemExit as leaving:  # argparse leaves by itself
        code = int(leaving.code or 0)
    assert code == 0
    assert len(capsys.readouterr().out) > 40


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["trian"], "there is no command trian. Did you mean train?"),
        (["dataset=mutag"], "the command is missing; did you mean `lpgnn train dataset=mutag`?"),
        (["train", "datset=mutag"], "there is no setting datset. Did you mean dataset or data?"),
        (["train", "dataset=mutg"], "dataset has no option mutg. Did you mean mutag?"),
        (["train", "dataset=MUTAG"], "dataset has no option MUTAG. Did you mean mutag?"),
        (["train", "g=abs_epss"], "g has no option abs_epss. Did you mean abs_eps?"),
        (["train", "layers=0"], "layers must be at least 1, not 0."),
        (["train", "layers=two"], "layers must be a whole number, not two."),
        (["train", "lr.theta=-1"], "lr.theta must be greater than 0, not -1."),
        (["train", "g=abs_eps", "g.eps=-0.1"], "g.eps must be at least 0, not -0.1."),
        (["train", "lr.thet=1"], "there is no setting lr.thet. Did you mean lr.theta"),
        (
            ["train", "g.eps=0.1"],
            "g=auto has no setting eps; g=abs_eps, g=lin_eps and g=no",
        ),
        (["train", "dataset==x"], "dataset==x cannot be read as a setting: write key=value"),
        (["train", "+"], "+ cannot be read as a setting: write key=value"),
        (["train", "--config-dir", "nowhere"], "--config-dir nowhere: there is no such folder."),
        (["train", "--cgf", "job"], "there is no flag --cgf. Did you mean --cfg?"),
        (["train", "--cfg", "jobs"], "argument --cfg/-c: invalid choice: 'jobs'"),
        (["train", "--cfg", "job", "-m"], "choose one of --run, --multirun"),
        (["train", "-m", "layers=1,0"], "layers must be at least 1, not 0."),
        (["train", "-m", "g=abs,absq"], "g has no option absq. Did you mean abs"),
        (["completion", "tcsh"], "the shell must be bash, zsh or fish, not tcsh."),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(argv, capsys)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"lpgnn: {sentence}")


def test_a_full_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(UserError, match="layers must be a whole number") as raised:
        main(["train", "layers=two"])
    assert raised.value.__cause__ is not None


def test_cfg_prints_the_composed_config_and_leaves_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(["train", "--cfg", "job", "g=abs_eps", "lr.theta=1e-3"], capsys)
    assert (code, err) == (0, "")
    assert "eps: 0.01" in out
    assert "theta: 0.001" in out
    assert list(tmp_path.iterdir()) == []


def test_flags_may_stand_between_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["train", "seed=7", "--cfg", "job", "epochs=3"], capsys)
    assert code == 0
    assert "seed: 7" in out
    assert "epochs: 3" in out


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(["--info", "defaults-tree"], "dataset: mutag"), (["--hydra-help"], "--multirun")],
)
def test_info_and_help_of_hydra_itself(flags: list[str], expected: str) -> None:
    # In a process of its own: Hydra prints these by reconfiguring all logging.
    words = [sys.executable, "-m", "lpgnn_cli", "train", *flags]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout


def test_a_folder_of_ones_own_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "narrow.yaml").write_text(
        "# A narrow band.\ndefaults: [abs_eps, _self_]\n# Half of it.\neps: 0.001\n"
    )
    where = ["--config-dir", str(tmp_path)]
    code, out, _ = run(["train", *where, "g=narrow", "--cfg", "job", "-p", "g"], capsys)
    assert code == 0
    assert "name: abs_eps" in out
    assert "eps: 0.001" in out
    _, out, _ = run(["train", *where, "g=narrow", "--help"], capsys)
    assert "[narrow]" in out
    assert "A narrow band." in out
    assert "Half of it." in out
    _, _, err = run(["train", *where, "g=narow"], capsys)
    assert "Did you mean narrow?" in err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"# @package _global_\nepochs: [3", "experiment/own.yaml cannot be read: while parsing"),
        (b"\xff", "experiment/own.yaml cannot be read: 'utf-8' codec can't decode"),
        (b"epochs: 3", "experiment/own.yaml belongs to the whole config: begin it with"),
        (
            b"# @package _global_\nepoch: 3",
            "experiment/own.yaml sets epoch, which is no setting there.",
        ),
        (
            b"# @package _global_\nepochs: many",
            "experiment/own.yaml cannot be used: Value 'many' of type 'str' could not be",
        ),
    ],
)
def test_a_file_of_ones_own_that_cannot_be_used(
    content: bytes, sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "own.yaml").write_bytes(content)
    words = ["--config-dir", str(tmp_path), "experiment=own"]
    for argv in (["train", *words], ["sweep", *words, "seed=1,2"]):
        code, out, err = run(argv, capsys)
        assert (code, out) == (2, "")
        assert err.startswith(f"lpgnn: {sentence}")


class FakeTrain:
    """Stands in for a command's module, and keeps what it was run with."""

    def __init__(self, outcome: float | Exception) -> None:
        self.outcome = outcome
        self.configs: list[TrainConfig] = []

    def run(self, config: TrainConfig) -> float:
        self.configs.append(config)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def fake_train(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTrain:
    fake = FakeTrain(0.5)
    monkeypatch.setitem(sys.modules, "lpgnn_cli.commands.train", fake)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LPGNN_RUNS", raising=False)
    return fake


def test_a_run_gets_the_typed_config_and_hydra_leaves_nothing_behind(
    fake_train: FakeTrain, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["train", "dataset=karate", "seed=3"], capsys) == (0, "", "")
    (config,) = fake_train.configs
    assert config.seed == 3
    assert type(config.dataset).__name__ == "KarateConfig"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code"), [(UserError("put\nit right."), 2), (RunFailed("it diverged."), 1)]
)
def test_errors_of_a_run_are_one_line(
    fake_train: FakeTrain, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    fake_train.outcome = error
    line = f"lpgnn: {' '.join(str(error).split())}\n"
    assert run(["train"], capsys) == (code, "", line)


def test_multirun_runs_every_combination_under_runs(
    fake_train: FakeTrain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(["train", "-m", "layers=1,2", "g=abs,squared"], capsys)
    assert (code, err) == (0, "")
    seen = {(c.layers, c.g.name) for c in fake_train.configs}
    assert seen == {(1, "abs"), (1, "squared"), (2, "abs"), (2, "squared")}
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    lpgnn = f"{sys.executable} -m lpgnn_cli"
    done = subprocess.run(
        ["bash", "-c", f"{lpgnn} train --help | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert done.stdout.startswith("lpgnn train")
    assert done.stderr == ""


def complete(*lines: str) -> list[str]:
    """What a real bash offers after TAB at the end of each line."""
    program = """
    eval "$(lpgnn completion bash)"
    complete -p lpgnn >/dev/null || exit 9
    offer() {
      COMP_LINE=$1; COMP_POINT=${#1}; read -ra COMP_WORDS <<<"$1"
      [[ $1 == *" " ]] && COMP_WORDS+=("")
      COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
      hydra_bash_completion; echo "${COMPREPLY[*]}"
    }
    """
    program += "\n".join(f"offer '{line}'" for line in lines)
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(
    not (shutil.which("bash") and Path(sys.executable).with_name("lpgnn").exists()),
    reason="needs bash and an installed lpgnn",
)
def test_tab_completes_commands_options_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    command, option, setting, every = complete(
        "lpgnn tra", "lpgnn train dataset=mu", "lpgnn train g=abs_eps g.e", "lpgnn train g="
    )
    assert command == "train"
    assert option == "dataset=mutag"
    assert setting == "g.eps="
    assert every.split() == [
        "g=abs",
        "g=abs_eps",
        "g=auto",
        "g=lin",
        "g=lin_eps",
        "g=norm1_eps",
        "g=squared",
    ]


def test_hydras_own_way_to_install_completion(capsys: pytest.CaptureFixture[str]) -> None:
    ours = run(["completion", "bash"], capsys)
    assert "complete" in ours[1]
    assert ours[1].rstrip().endswith("lpgnn")
    assert run(["-sc", "install=bash"], capsys) == ours
    assert run(["train", "-sc", "install=bash"], capsys) == ours
