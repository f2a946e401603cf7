"""Messages: what is written is read back, and nothing that can stand in a store gets past the reader as another error."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_drain_store import (
    Channel,
    DrainNotification,
    DrainReport,
    DrainState,
    ExecutorException,
    MalformedMessageError,
    OperatorReport,
    QueryReport,
)
from spark_drain_store.drains import Drains

KEY = "0b0e3a52"

texts = st.text(max_size=20)
counts = st.integers(min_value=0, max_value=10**12)
# The format carries milliseconds.
times = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
notifications = st.builds(
    DrainNotification,
    drain_id=st.just(KEY),
    created_at=times,
    run_id=st.none() | texts,
    attempt=counts,
    mode=texts,
    options=st.dictionaries(texts, texts, max_size=4),
    approved=st.booleans(),
    withdrawn=st.booleans(),
    acknowledge_by=st.none() | times,
    deadline=st.none() | times,
    pipeline_drain=texts,
)
operators = st.builds(OperatorReport, name=texts, disposition=texts, rows_before=st.none() | counts, rows_after=st.none() | counts)
queries = st.builds(
    QueryReport,
    id=texts,
    name=texts,
    state=texts,
    checkpoint_location=texts,
    checkpoint_policy=texts,
    sink=texts,
    last_batch_id=st.none() | counts,
    flush_batch_id=st.none() | counts,
    end_offsets=st.dictionaries(texts, texts, max_size=3),
    watermark_ms=st.none() | counts,
    operators=st.lists(operators, max_size=3).map(tuple),
    warnings=st.lists(texts, max_size=3).map(tuple),
    archive=texts,
    side_output=texts,
    state_export=texts,
    message=texts,
)
reports = st.builds(
    DrainReport,
    drain_id=st.just(KEY),
    runs=st.lists(texts, max_size=3).map(tuple),
    state=st.sampled_from(DrainState),
    updated_at=times,
    reason=texts,
    message=texts,
    queries=st.lists(queries, max_size=3).map(tuple),
    executors_expected=counts,
    executors_drained=texts,
    executor_exceptions=st.lists(st.builds(ExecutorException, id=texts, state=texts, detail=texts), max_size=3).map(tuple),
    driver_pod_uid=texts,
    driver_pod_name=texts,
    withdrawal=st.sampled_from(["", "Withdrawn", "TooLate"]),
    timings=st.dictionaries(texts, st.floats(min_value=0, max_value=1e9), max_size=3),
    sequence=counts,
    agent_version=texts,
    spark_version=texts,
)


@given(notifications)
def test_a_notification_is_read_back_as_it_was_written(notification: DrainNotification) -> None:
    assert DrainNotification.from_json(KEY, notification.to_json()) == notification


@given(reports)
def test_a_report_is_read_back_as_it_was_written(report: DrainReport) -> None:
    assert DrainReport.from_json(KEY, report.to_json()) == report


def test_text_that_is_no_utf_8_is_stored_and_read_back() -> None:
    """As in the name of a file that an exception names."""
    report = DrainReport(
        drain_id=KEY, runs=("app-1",), state=DrainState.FAILED, updated_at=datetime(2026, 1, 1, tzinfo=UTC), message="no file M\udcfcll, 😀"
    )
    assert DrainReport.from_json(KEY, report.to_json().encode().decode()) == report


def test_the_stored_form_is_the_documented_one() -> None:
    notification = DrainNotification(
        drain_id=KEY,
        created_at=datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
        run_id="spark-1",
        options={"checkpoint.policy": "Reseed"},
        deadline=datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC),
    )
    assert json.loads(notification.to_json()) == {
        "version": 1,
        "uuid": KEY,
        "createdAt": "2026-01-02T03:04:05.678Z",
        "runId": "spark-1",
        "attempt": 1,
        "mode": "Drain",
        "options": {"checkpoint.policy": "Reseed"},
        "approved": False,
        "withdrawn": False,
        "acknowledgeBy": None,
        "deadline": "2026-01-02T04:04:05.000Z",
        "pipelineDrain": "",
    }


def test_times_of_another_zone_are_the_same_times() -> None:
    text = _notification(createdAt="2026-01-02T05:04:05+02:00")
    assert DrainNotification.from_json(KEY, text).created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_absent_fields_have_the_defaults_of_a_plain_drain() -> None:
    notification = DrainNotification.from_json(KEY, _notification())
    assert notification == DrainNotification(drain_id=KEY, created_at=notification.created_at)
    assert notification.parsed_options().mode == "Drain"


def test_unknown_fields_are_ignored_so_that_either_side_may_be_newer() -> None:
    known = DrainNotification.from_json(KEY, _notification())
    assert DrainNotification.from_json(KEY, _notification(priority=7, later={"deeply": ["nested"]})) == known
    report = _report(queries=[{"id": "1", "name": "q", "state": "Running", "new": 1}], zone="b")
    assert DrainReport.from_json(KEY, report).queries[0].name == "q"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"uuid": "other"}, f"field 'uuid' must be the entry's key '{KEY}', not 'other'"),
        ({"uuid": None}, "field 'uuid' must be a string, not None"),
        ({"createdAt": None}, "field 'createdAt' must be an RFC 3339 time with zone, not None"),
        ({"createdAt": "yesterday"}, "field 'createdAt' must be an RFC 3339 time with zone, not 'yesterday'"),
        ({"createdAt": "2026-01-02T03:04:05"}, "field 'createdAt' must be an RFC 3339 time with zone, not '2026-01-02T03:04:05'"),
        ({"createdAt": "0001-01-01T00:00:00+14:00"}, "field 'createdAt' must be an RFC 3339 time with zone"),
        ({"deadline": 5}, "field 'deadline' must be an RFC 3339 time with zone, not 5"),
        ({"runId": 5}, "field 'runId' must be a string, not 5"),
        ({"attempt": "2"}, "field 'attempt' must be a whole number, not '2'"),
        ({"attempt": True}, "field 'attempt' must be a whole number, not True"),
        ({"mode": ["Drain"]}, "field 'mode' must be a string, not ['Drain']"),
        ({"options": ["queries"]}, "field 'options' must be an object, not ['queries']"),
        ({"options": ""}, "field 'options' must be an object, not ''"),
        ({"options": {"checkpoint.retainArchives": 3}}, "field 'options' must be an object of strings"),
        ({"approved": "yes"}, "field 'approved' must be true or false, not 'yes'"),
        ({"withdrawn": 1}, "field 'withdrawn' must be true or false, not 1"),
        ({"version": 2}, "has version 2; this side reads version 1: upgrade the older side"),
    ],
    ids=str,
)
def test_a_malformed_notification_is_named_with_field_and_value(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        DrainNotification.from_json(KEY, _notification(**changes))
    assert str(caught.value).startswith(f"drain notification '{KEY}'")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "Done"}, "field 'state' must be one of Requested, Acknowledged, Stopping"),
        ({"state": None}, "field 'state' must be a string, not None"),
        ({"updatedAt": 0}, "field 'updatedAt' must be an RFC 3339 time with zone, not 0"),
        ({"runs": "spark-1"}, "field 'runs' must be a list, not 'spark-1'"),
        ({"runs": [1]}, "field 'runs' must be a list of strings, not [1]"),
        ({"queries": [1]}, "field 'queries' must be a list of objects, not [1]"),
        ({"queries": {}}, "field 'queries' must be a list, not {}"),
        ({"queries": [{"id": "1", "name": "q", "state": 3}]}, "queries[0]: field 'state' must be a string, not 3"),
        (
            {"queries": [{"id": "1", "name": "q", "state": "Running", "operators": [{"name": "x", "disposition": None}]}]},
            "queries[0]: operators[0]: field 'disposition' must be a string, not None",
        ),
        ({"timings": {"flush": "3 s"}}, "field 'timings' must be an object of numbers"),
        ({"timings": {"flush": 10**400}}, "field 'timings' must be an object of numbers"),
        ({"executorExceptions": [{"id": 4}]}, "executorExceptions[0]: field 'id' must be a string, not 4"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_malformed_report_is_named_with_field_and_value(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        DrainReport.from_json(KEY, _report(**changes))
    assert str(caught.value).startswith(f"drain report '{KEY}'")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("drain!", "is not JSON"),
        ('{"version": 1', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("null", "must be a JSON object, not 'null'"),
        ('["a"]', "must be a JSON object"),
        ("{}", "has version None"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_message_at_all_is_malformed(text: str, said: str) -> None:
    for read in (DrainNotification.from_json, DrainReport.from_json):
        with pytest.raises(MalformedMessageError, match=said.replace("[", r"\[")):
            read(KEY, text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
report_fields = st.sampled_from(
    sorted(json.loads(DrainReport(drain_id=KEY, runs=(), state=DrainState.DRAINED, updated_at=datetime.now(UTC)).to_json()))
)


@given(st.dictionaries(report_fields, json_values, max_size=6))
def test_whatever_stands_in_the_fields_a_report_is_read_or_malformed(fields: Mapping[str, Any]) -> None:
    try:
        report = DrainReport.from_json(KEY, _report(**fields))
    except MalformedMessageError:
        return
    assert DrainReport.from_json(KEY, report.to_json()).runs == report.runs


def test_entries_that_cannot_be_read_are_listed_and_leave_the_others_alone() -> None:
    channel = Channel.in_memory()
    channel.requests.write({KEY: _notification(), "bad": "{"})
    channel.reports.write({KEY: _report(), "worse": _report()})
    drains = Drains.read(channel)
    assert list(drains.notifications) == list(drains.reports) == [KEY]
    assert [text.split(" is not")[0].split(":")[0] for text in drains.malformed] == ["drain notification 'bad'", "drain report 'worse'"]


def test_notifications_are_listed_oldest_first() -> None:
    channel = Channel.in_memory()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for age, drain_id in enumerate(("c", "a", "b")):
        channel.requests.write({drain_id: DrainNotification(drain_id=drain_id, created_at=now - timedelta(days=age)).to_json()})
    assert list(Drains.read(channel).notifications) == ["b", "a", "c"]


@pytest.mark.parametrize("state", DrainState)
def test_only_a_state_after_which_the_agent_does_nothing_more_is_finished(state: DrainState) -> None:
    # A stalled drain goes on when its cause is gone, so the next drain must not start beside it.
    assert state.finished == (state in {"Drained", "Withdrawn", "Failed", "Rejected"})
    assert state.beyond_return == (state in {"Committing", "Flushing", "Reporting", "Drained"})
    assert state.given_up == (state in {"Withdrawn", "Failed", "Rejected"})
    assert state.forward_only == (state in {"Committing", "Flushing", "Reporting", "Drained", "Stalled"})


def _notification(**changes: Any) -> str:
    return json.dumps({"version": 1, "uuid": KEY, "createdAt": "2026-01-02T03:04:05Z", **changes})


def _report(**changes: Any) -> str:
    return json.dumps({"version": 1, "uuid": KEY, "runs": ["spark-1"], "state": "Drained", "updatedAt": "2026-01-02T03:04:05Z", **changes})


@pytest.mark.parametrize("key", ["..", "a.b", "journal", "lease", "lease-heartbeat", "empty-store", "_x", "x" * 64])
def test_a_drain_is_not_called_what_a_folder_cannot_be_called(key: str) -> None:
    """A drain's id names a folder in the checkpoint."""
    text = json.dumps({"version": 1, "uuid": key, "createdAt": "2026-01-01T00:00:00.000Z"})
    with pytest.raises(MalformedMessageError, match="give it a UUID"):
        DrainNotification.from_json(key, text)
