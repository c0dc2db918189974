"""Some seconds of `make fuzz`, and records made of anything that JSON can hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpgnn_cli.errors import UserError
from lpgnn_cli.names import checked_name
from lpgnn_cli.runfolder import RunRecord, UnitResult
from lpgnn_cli.stored import parse_yaml, record_from
from lpgnn_cli.sweeps.jobs import Job, JobNotes
from lpgnn_cli.tracking.state import TrackingState

from .fuzz import fuzz

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=10,
)
RECORDS = [RunRecord, UnitResult, TrackingState, JobNotes, Job]


def test_damaged_input_is_read_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPGNN_RUNS", "")  # which the fuzzer sets, and pytest sets back
    monkeypatch.setenv("LPGNN_CACHE", "")
    found, failures = fuzz(300, seed=1, folder=tmp_path)
    assert failures == []
    assert found.total() == 300
    assert found["checkpoint", "refused"] >= 55


@pytest.mark.parametrize("kind", RECORDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_records_of_anything(kind: Any, data: st.DataObject) -> None:
    names = [*kind.__dataclass_fields__, "nonsense"]
    raw = data.draw(ANYTHING | st.dictionaries(st.sampled_from(names), ANYTHING))
    try:
        record = record_from(kind, raw, "a file")
    except UserError:
        return
    # By their text, since NaN is not equal to itself.
    assert repr(record_from(kind, dataclasses.asdict(record), "a file")) == repr(record)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_yaml_of_anything(text: str) -> None:
    try:
        found = parse_yaml(text, "a file")
    except UserError:
        return
    assert repr(parse_yaml(yaml.safe_dump(found), "a file")) == repr(found)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_names_stay_inside(name: str) -> None:
    folder = Path("/somewhere")
    try:
        path = folder / checked_name("name", name)
    except UserError:
        return
    assert path.parent == folder
    assert path.name == name
