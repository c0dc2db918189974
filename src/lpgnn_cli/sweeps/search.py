"""`hydra/sweeper=optuna`: a search whose study lies beside the sweep, and that prunes by epoch.

    study.journal    Optuna's study: every trial with its values, read and written by all processes
    search.json      which trial has which job, and how to prune: what a job must know

A trial that was in flight when the search was interrupted is drawn again with the same values; its
job goes on from its checkpoint.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    RangeSweep,
    Transformer,
)
from hydra.core.utils import JobReturn

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import TEST, TRAIN, VAL, larger_is_better, leading_on
from lpgnn_cli.reporting.look import new_figure, style
from lpgnn_cli.runfolder import RunFolder, Unit, UnitResult
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.stored import read_json
from lpgnn_cli.sweeps.jobs import Job, asked, note_pruning

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

STUDY, SEARCH = "study.journal", "search.json"
NAME = "lpgnn"
FEWEST_TRIALS = 4
DRAWN_AGAIN, PRUNED_AT = "drawn_again", "pruned_at"


class SearchSettings(Protocol):
    """conf/hydra/sweeper/optuna.yaml."""

    n_trials: int
    n_jobs: int
    sampler: str
    seed: int
    pruner: str
    startup_trials: int
    warmup_epochs: int


class RunsJobs(Protocol):
    """What a search asks for: the jobs of so many draws, in their order."""

    def __call__(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]: ...


def search(
    settings: SearchSettings,
    folder: Path,
    metric: str,
    words: Sequence[str],
    launch: RunsJobs,
    stopping: Callable[[], bool],
) -> None:
    """Draw, run and tell, until there are enough trials."""
    fixed, space = split(words)
    study = open_study(settings, folder, metric)
    states = _optuna().trial.TrialState
    for left_behind in study.get_trials(deepcopy=False, states=[states.RUNNING]):
        _as_trial(study, left_behind.number).set_user_attr(DRAWN_AGAIN, True)
        study.tell(left_behind.number, state=states.FAIL)
        study.enqueue_trial(left_behind.params)
    while (left := settings.n_trials - _count(study)) > 0:
        trials = [study.ask(space) for _ in range(min(left, settings.n_jobs))]
        drawn = [[*fixed, *(f"{k}={v}" for k, v in t.params.items())] for t in trials]
        _remember(folder, settings, {_key(d): t.number for d, t in zip(drawn, trials, strict=True)})
        answers = launch(drawn, trials[0].number)
        if stopping():
            return
        for trial, answer in zip(trials, answers, strict=True):
            value: float | None = answer.return_value
            if value is not None and math.isfinite(value):
                study.tell(trial, value)
            elif PRUNED_AT in study.trials[trial.number].user_attrs:
                study.tell(trial, state=states.PRUNED)
            else:
                study.tell(trial, state=states.FAIL)
    draw_importance(study, folder / "figures")


def open_study(settings: SearchSettings, folder: Path, metric: str) -> optuna.Study:
    package = _optuna()
    samplers = {
        "tpe": lambda seed: package.samplers.TPESampler(seed=seed, constant_liar=True),
        "random": lambda seed: package.samplers.RandomSampler(seed=seed),
        "cmaes": lambda seed: package.samplers.CmaEsSampler(seed=seed),
    }
    if settings.sampler not in samplers:
        names = ", ".join(samplers)
        raise UserError(f"hydra.sweeper.sampler must be one of {names}, not {settings.sampler}.")
    storage = _storage(folder)
    known = {s.study_name: s.n_trials for s in package.get_all_study_summaries(storage)}
    # A search that goes on must not draw again what it began with.
    sampler = samplers[settings.sampler](settings.seed + known.get(NAME, 0))
    study: optuna.Study = package.create_study(
        storage=storage,
        study_name=NAME,
        load_if_exists=True,
        direction="maximize" if larger_is_better(metric) else "minimize",
        sampler=sampler,
        pruner=_pruner(settings),
    )
    return study


def split(words: Sequence[str]) -> tuple[list[str], dict[str, BaseDistribution]]:
    """The overrides that all trials share, and what is drawn, by its key."""
    last = {o.key_or_group: o for o in OverridesParser.create().parse_overrides(list(words))}
    parsed = last.values()
    fixed = [str(o.input_line) for o in parsed if not o.is_sweep_override()]
    space = {o.key_or_group: _distribution(o) for o in parsed if o.is_sweep_override()}
    if not space:
        raise UserError(
            "a search needs something to draw: lr.theta='interval(1e-4, 1e-1)' or g=abs,squared."
        )
    return fixed, space


def _distribution(override: Override) -> BaseDistribution:
    kinds = _optuna().distributions
    value = override.value()
    found: BaseDistribution
    if isinstance(value, IntervalSweep):
        start: Any = value.start
        end: Any = value.end
        whole = isinstance(start, int) and isinstance(end, int)
        kind = kinds.IntDistribution if whole else kinds.FloatDistribution
        found = kind(start, end, log="log" in value.tags)
    elif isinstance(value, RangeSweep | ChoiceSweep):
        choices = override.sweep_iterator(transformer=Transformer.encode)
        found = kinds.CategoricalDistribution([str(choice) for choice in choices])
    else:
        raise UserError(f"{override.input_line} cannot be drawn: use interval(...) or a,b,c.")
    return found


def pruning_of(sweep: Path, job: Job, stop: StopFlag) -> Pruning | None:
    """The observer of a job that is a trial; None in a sweep that is no search, or never prunes."""
    path = sweep / SEARCH
    if not path.is_file():
        return None
    stored = read_json(path)
    number = stored["trials"].get(_key(job.overrides))
    settings = SimpleNamespace(**stored["pruning"])
    if number is None or settings.pruner == "none":
        return None
    return Pruning(sweep, job, number, settings, stop)


class Pruning:
    """An observer in the process of a job: tells the study its curve, and stops it when told so.

    The curve is that of the first unit: of the validation part, or else of the part that the
    search goes by anyway, the test part or, where all is supervised, that of training.
    """

    def __init__(
        self, sweep: Path, job: Job, number: int, settings: SimpleNamespace, stop: StopFlag
    ) -> None:
        self._run = job.run
        self._stop = stop
        self._first = ""
        study = _optuna().load_study(
            study_name=NAME, storage=_storage(sweep), pruner=_pruner(settings)
        )
        self._maximises = study.direction.name == "MAXIMIZE"
        self._trial = _as_trial(study, number)

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None:
        self._first = units[0].name

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        parts = {name.partition("/")[0] for name in metrics}
        part = next((part for part in (VAL, TEST) if part in parts), TRAIN)
        metric = leading_on(part, metrics)
        value = metrics.get(metric.on(part))
        if unit != self._first or self._stop.raised or value is None:
            return
        self._trial.report(value if metric.larger_is_better == self._maximises else -value, epoch)
        if self._trial.should_prune():
            self._trial.set_user_attr(PRUNED_AT, epoch)
            note_pruning(self._run, epoch)
            self._stop.raised = True

    def unit_ended(self, unit: str, result: UnitResult) -> None:
        pass

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None:
        pass


def draw_importance(study: optuna.Study, figures: Path) -> None:
    """How much of the differences between trials each drawn setting explains."""
    done = [t for t in study.trials if t.value is not None]
    if len(done) < FEWEST_TRIALS or len({t.value for t in done}) == 1:
        return
    importances = _optuna().importance.get_param_importances(study)
    with style():
        figure = new_figure(6, 1.2 + 0.4 * len(importances), "importance of what was drawn")
        panel = figure.subplots()
        panel.barh(list(importances)[::-1], list(importances.values())[::-1])
        panel.set_xlabel(f"share of the differences between {len(done)} trials (fANOVA)")
        figures.mkdir(exist_ok=True)
        figure.savefig(figures / "importance.png")


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise UserError(
            "hydra/sweeper=optuna needs Optuna: pip install 'lpgnn-cli[optuna]'."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


def _storage(folder: Path) -> optuna.storages.BaseStorage:
    journal = _optuna().storages.journal
    storage: optuna.storages.BaseStorage = _optuna().storages.JournalStorage(
        journal.JournalFileBackend(str(folder / STUDY))
    )
    return storage


def _pruner(settings: Any) -> Any:
    pruners = _optuna().pruners
    startup, warmup = settings.startup_trials, settings.warmup_epochs
    known = {
        # Epochs count from 1, and the last one of the warm-up is still safe.
        "median": lambda: pruners.MedianPruner(startup, warmup + 1),
        "hyperband": lambda: pruners.HyperbandPruner(min_resource=max(1, warmup)),
        "none": lambda: pruners.NopPruner(),
    }
    if settings.pruner not in known:
        names = ", ".join(known)
        raise UserError(f"hydra.sweeper.pruner must be one of {names}, not {settings.pruner}.")
    return known[settings.pruner]()


def _as_trial(study: optuna.Study, number: int) -> optuna.Trial:
    """A trial that another process has drawn, to be told about."""
    trial: optuna.Trial = _optuna().trial.Trial(study, study.trials[number]._trial_id)
    return trial


def _count(study: optuna.Study) -> int:
    """The trials that have ended, whatever came of them; one that is drawn again counts once."""
    return sum(t.state.is_finished() and DRAWN_AGAIN not in t.user_attrs for t in study.trials)


def _key(overrides: Sequence[str]) -> str:
    return " ".join(sorted(asked(overrides)))


def _remember(folder: Path, settings: SearchSettings, trials: Mapping[str, int]) -> None:
    path = folder / SEARCH
    known = read_json(path)["trials"] if path.is_file() else {}
    names = ("pruner", "startup_trials", "warmup_epochs")
    pruning = {name: getattr(settings, name) for name in names}
    write_atomically(path, json.dumps({"pruning": pruning, "trials": {**known, **trials}}))
