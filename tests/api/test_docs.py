"""Every example in docs/python.md runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lpgnn_cli as lpgnn

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_run(
    pyg: Any, sober: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train, sweep = lpgnn.train, lpgnn.sweep

    def train_soberly(*words: str, **settings: Any) -> lpgnn.Run:
        quick = sober | {"protocol.folds": 2, "protocol.workers": 1, "inference.steps": 20}
        return train(*words, **settings if "resume" in settings else quick | settings)

    def sweep_soberly(*words: str, **settings: Any) -> lpgnn.Sweep:
        quick = sober | {"hydra/launcher": "basic", "inference.steps": 20}
        return sweep(*words, **quick | settings)

    monkeypatch.setattr(lpgnn, "train", train_soberly)
    monkeypatch.setattr(lpgnn, "sweep", sweep_soberly)
    namespace: dict[str, Any] = {}
    codes = examples()
    assert len(codes) > 6
    for code in codes:
        quick = re.sub(r"epochs=(\d+)", lambda found: f"epochs={int(found[1]) // 50}", code)
        exec(compile(quick, str(DOCUMENT), "exec"), namespace)
    assert namespace["run"].state == "finished"
    assert namespace["prediction"].classes.shape == (2,)
    assert namespace["model"].units == ["fold-00"]
    assert (tmp_path / "rings.npz").is_file()
