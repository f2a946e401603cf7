"""Drain options: names and values of the PipelineDrain's spec, checked before anything is touched."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_drain_store import DrainOptions, UnsupportedOptionError
from spark_drain_store.options import MODES, join_names


@pytest.mark.parametrize(
    ("mode", "options", "expected"),
    [
        ("Drain", {}, DrainOptions()),
        ("CatchUp", {}, DrainOptions(mode="CatchUp")),
        ("Stop", {}, DrainOptions(mode="Stop")),
        ("Drain", {"queries": "clicks"}, DrainOptions(queries=("clicks",))),
        ("Drain", {"queries": " clicks , views ,"}, DrainOptions(queries=("clicks", "views"))),
        ("Drain", {"incompleteWindows.policy": "Discard"}, DrainOptions(incomplete_windows="Discard")),
        (
            "Drain",
            {"incompleteWindows.policy": "SideOutput", "incompleteWindows.sideOutput.path": "s3a://b/p"},
            DrainOptions(incomplete_windows="SideOutput", side_output_path="s3a://b/p", side_output_format="parquet"),
        ),
        (
            "CatchUp",
            {
                "incompleteWindows.policy": "SideOutput",
                "incompleteWindows.sideOutput.path": "p",
                "incompleteWindows.sideOutput.format": "json",
            },
            DrainOptions(mode="CatchUp", incomplete_windows="SideOutput", side_output_path="p", side_output_format="json"),
        ),
        ("Stop", {"stateExport.path": "s3a://b/e"}, DrainOptions(mode="Stop", state_export_path="s3a://b/e")),
        ("Drain", {"checkpoint.policy": "Reseed"}, DrainOptions(checkpoint_policy="Reseed")),
        (
            "Drain",
            {"checkpoint.acceptBatchIdRestart": "true", "checkpoint.policy": "Reseed"},
            DrainOptions(accept_batch_id_restart=True, checkpoint_policy="Reseed"),
        ),
        ("Drain", {"checkpoint.acceptBatchIdRestart": "false"}, DrainOptions()),
        ("Drain", {"checkpoint.retainArchives": "0"}, DrainOptions(retain_archives=0)),
        ("Drain", {"stateLossPolicy": "Accept"}, DrainOptions(state_loss_policy="Accept")),
        ("Drain", {"execution": "PlanOnly"}, DrainOptions(execution="PlanOnly")),
        ("Stop", {"execution": "AfterApproval"}, DrainOptions(mode="Stop", execution="AfterApproval")),
        ("Stop", {"queries": ' ["a,b", "c"]', "afterDrain": "Keep"}, DrainOptions(mode="Stop", queries=("a,b", "c"), after_drain="Keep")),
        ("Stop", {"queries": "a", "afterDrain": "Keep"}, DrainOptions(mode="Stop", queries=("a",), after_drain="Keep")),
    ],
    ids=str,
)
def test_options_are_read_with_their_defaults_resolved(mode: str, options: Mapping[str, str], expected: DrainOptions) -> None:
    assert DrainOptions.parse(mode, options) == expected


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("drain", {}, "mode 'drain' must be one of Drain, CatchUp, Stop"),
        ("", {}, "mode '' must be one of"),
        ("Drain", {"checkpoint": "Reseed"}, "option 'checkpoint' (value 'Reseed') is not known; known are afterDrain"),
        ("Drain", {"mode": "Stop"}, "; it is given by --mode"),
        (
            "Drain",
            {"checkpoint.acceptBatchIdRestart": "yes"},
            "option 'checkpoint.acceptBatchIdRestart' must be one of true, false, not 'yes'",
        ),
        ("Drain", {"checkpoint.acceptBatchIdRestart": "true"}, "may only be true when 'checkpoint.policy' is Reseed, not Auto"),
        ("Drain", {"checkpoint.policy": "reseed"}, "option 'checkpoint.policy' must be one of Auto, Reseed, Continue, Keep, not 'reseed'"),
        ("Drain", {"incompleteWindows.policy": ""}, "option 'incompleteWindows.policy' must be one of Emit, SideOutput, Discard, not ''"),
        (
            "Drain",
            {"incompleteWindows.policy": "SideOutput"},
            "option 'incompleteWindows.sideOutput.path' must be set when 'incompleteWindows.policy' is SideOutput",
        ),
        ("Drain", {"incompleteWindows.sideOutput.path": "p"}, "'incompleteWindows.sideOutput.path' (value 'p') must be absent unless"),
        ("Drain", {"incompleteWindows.sideOutput.format": "json"}, "'incompleteWindows.policy' is SideOutput, not Emit"),
        (
            "Stop",
            {"incompleteWindows.sideOutput.path": "p"},
            "option 'incompleteWindows.sideOutput.path' (value 'p') must be absent with mode",
        ),
        ("Drain", {"stateExport.path": " "}, "option 'stateExport.path' must not be empty"),
        ("Drain", {"stateLossPolicy": "Ignore"}, "option 'stateLossPolicy' must be one of Refuse, Accept, not 'Ignore'"),
        ("Drain", {"execution": "Later"}, "option 'execution' must be one of Immediate, AfterApproval, PlanOnly, not 'Later'"),
        ("Drain", {"afterDrain": "Resume"}, "option 'afterDrain' must be one of Suspend, Restart, Delete, Keep, not 'Resume'"),
        ("Drain", {"queries": "[a]"}, "option 'queries' must be names separated by commas, or a JSON array of names, not '[a]'"),
        ("Drain", {"queries": "[" * 2000}, "option 'queries' must be names separated by commas, or a JSON array of names, not '[[["),
        ("Drain", {"queries": '["a", 1]'}, "option 'queries' must be names separated by commas, or a JSON array of names"),
        ("Drain", {"queries": "[]"}, "option 'queries' must name at least one query"),
        ("Drain", {"queries": " , "}, "option 'queries' must name at least one query"),
        (
            "Drain",
            {"checkpoint.retainArchives": "-1"},
            "option 'checkpoint.retainArchives' must be a whole number from 0 to 999999999, not '-1'",
        ),
        (
            "Drain",
            {"checkpoint.retainArchives": "²"},
            "option 'checkpoint.retainArchives' must be a whole number from 0 to 999999999, not '²'",
        ),
        (
            "Drain",
            {"checkpoint.retainArchives": ""},
            "option 'checkpoint.retainArchives' must be a whole number from 0 to 999999999, not ''",
        ),
        ("Stop", {"incompleteWindows.policy": "Emit"}, "option 'incompleteWindows.policy' (value 'Emit') must be absent with mode Stop"),
        ("Stop", {"checkpoint.policy": "Auto"}, "option 'checkpoint.policy' (value 'Auto') must be absent with mode Stop"),
        ("Stop", {"checkpoint.retainArchives": "1"}, "option 'checkpoint.retainArchives' (value '1') must be absent with mode Stop"),
    ],
    ids=str,
)
def test_a_wrong_option_is_named_with_its_value_and_the_way_out(mode: str, options: Mapping[str, str], said: str) -> None:
    with pytest.raises(UnsupportedOptionError) as caught:
        DrainOptions.parse(mode, options)
    assert said in str(caught.value)


names = st.sampled_from(
    ["queries", "checkpoint.policy", "checkpoint.acceptBatchIdRestart", "checkpoint.retainArchives", "execution", "afterDrain"]
) | st.text(max_size=8)


@given(st.sampled_from(MODES) | st.text(max_size=6), st.dictionaries(names, st.text(max_size=12), max_size=4))
def test_no_option_ends_in_another_error(mode: str, options: Mapping[str, str]) -> None:
    try:
        parsed = DrainOptions.parse(mode, options)
    except UnsupportedOptionError:
        return
    assert set(parsed.described()) == {
        *("mode", "queries", "incomplete_windows", "checkpoint_policy", "accept_batch_id_restart"),
        *("side_output_path", "side_output_format", "state_export_path"),
        *("retain_archives", "state_loss_policy", "execution", "after_drain"),
    }


@pytest.mark.parametrize(
    ("names", "value"),
    [(["a"], "a"), (["a", "b c"], "a,b c"), (["a,b"], '["a,b"]'), ([" a"], '[" a"]'), (["[a]"], '["[a]"]'), (['["a"]', "b"], None)],
    ids=str,
)
def test_every_list_of_names_can_be_an_option(names: list[str], value: str | None) -> None:
    joined = join_names(names)
    assert value is None or joined == value
    assert DrainOptions.parse("Stop", {"queries": joined}).queries == tuple(names)
