"""What a drain would do to a query, and every way to refuse it, each with its way out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from spark_drain_agent.planning.limits import Limits
from spark_drain_agent.planning.plan import (
    PlanRejectedError,
    QueryFacts,
    check_options,
    fingerprint,
    measured,
    plan_query,
    residue,
    side_output_mode,
)
from spark_drain_agent.spark_internals.operators import LogicalOperator
from spark_drain_store import DrainOptions, OperatorReport

KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable"
DELTA = "org.apache.spark.sql.delta.sources.DeltaSink"
FILES = "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink"
UNSAFE = "CheckpointPolicyUnsafe"
BATCHES = "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink"
FACTS = QueryFacts(
    label="query 'orders'",
    sink="kafka",
    output_mode="Append",
    trigger="ProcessingTimeTrigger",
    operators=(LogicalOperator("Aggregate", watermarked=True),),
    checkpoint_location="s3://bucket/orders",
    sink_class=KAFKA,
    spark_version="4.2.0",
    state_provider="org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
)
DEDUPLICATES = LogicalOperator("Deduplicate", watermarked=False)


@pytest.mark.parametrize(
    ("operator", "output_mode", "disposition"),
    [
        (LogicalOperator("Aggregate", watermarked=True), "Append", "flushed"),
        (LogicalOperator("Aggregate", watermarked=True), "Update", "flushed"),
        (LogicalOperator("Aggregate", watermarked=True), "Complete", "forgotten"),
        (LogicalOperator("Aggregate", watermarked=False), "Update", "forgotten"),
        (LogicalOperator("Deduplicate", watermarked=True), "Append", "forgotten"),
        (LogicalOperator("DeduplicateWithinWatermark", watermarked=True), "Append", "forgotten"),
        (LogicalOperator("Join", watermarked=True), "Append", "flushed"),
        (LogicalOperator("Join", watermarked=False), "Append", "forgotten"),
        (LogicalOperator("FlatMapGroupsInPandasWithState", watermarked=True, timers=True), "Append", "flushed"),
        (LogicalOperator("FlatMapGroupsInPandasWithState", watermarked=False), "Append", "forgotten"),
        (LogicalOperator("GlobalLimit", watermarked=False), "Append", "forgotten"),
    ],
)
def test_what_infinity_does_to_an_operator(operator: LogicalOperator, output_mode: str, disposition: str) -> None:
    plan = plan_query(DrainOptions(state_loss_policy="Accept"), replace(FACTS, operators=(operator,), output_mode=output_mode))
    assert [(item.name, item.disposition) for item in plan.operators] == [(operator.name, disposition)]
    assert plan.flushes


def test_a_clock_beyond_all_timers_is_said_in_the_plan() -> None:
    timers = LogicalOperator("FlatMapGroupsInPandasWithState", watermarked=True, timers=True)
    assert not any("processing-time" in warning for warning in plan_query(DrainOptions(), replace(FACTS, operators=(timers,))).warnings)
    *_, warning = plan_query(DrainOptions(), replace(FACTS, operators=(replace(timers, processing_time=True),))).warnings
    assert "query 'orders' has processing-time timers" in warning
    assert "2262-01-01" in warning


@pytest.mark.parametrize(
    ("name", "timers", "processing_time", "warned"),
    [
        ("FlatMapGroupsInPandasWithState", True, False, True),
        ("FlatMapGroupsWithState", True, False, True),
        ("FlatMapGroupsInPandasWithState", True, True, False),
        ("FlatMapGroupsInPandasWithState", False, False, False),
        ("TransformWithStateInPySpark", True, False, False),
    ],
)
def test_timeouts_that_spark_refuses_in_the_flush_are_said_in_the_plan(
    name: str, timers: bool, processing_time: bool, warned: bool
) -> None:
    operator = LogicalOperator(name, watermarked=timers, timers=timers, processing_time=processing_time)
    plan = plan_query(DrainOptions(state_loss_policy="Accept"), replace(FACTS, operators=(operator,)))
    assert any("query 'orders' has timeouts in event time" in warning for warning in plan.warnings) == warned


@pytest.mark.parametrize("name", ["TransformWithStateInPySpark", "FlatMapGroupsInPandasWithState"])
def test_state_that_only_code_could_emit_is_said_in_the_plan(name: str) -> None:
    """Only the flush shows what timers leave; planned as flushed without a word, all state of a processor without timers was lost."""
    facts = replace(FACTS, operators=(LogicalOperator(name, watermarked=True, timers=True),))
    planned = {policy: plan_query(DrainOptions(checkpoint_policy=policy), facts).warnings for policy in ("Auto", "Continue")}
    assert {policy: sum(name in warning for warning in warnings) for policy, warnings in planned.items()} == {"Auto": 1, "Continue": 1}
    assert "starts without it" in " ".join(planned["Auto"])
    assert "let it set none where is_drain_pane() is true" in " ".join(planned["Continue"])
    assert not any("code of its own" in warning for warning in plan_query(DrainOptions(), FACTS).warnings)


@pytest.mark.parametrize("name", ["TransformWithStateInPySpark", "FlatMapGroupsInPandasWithState"])
def test_code_that_keeps_what_comes_in_the_flush_for_a_timer_has_no_batch_in_which_it_fires(name: str) -> None:
    """A window before a processor with timers by the clock: what the flush had handed on was in no sink."""
    operator = LogicalOperator(name, watermarked=True, timers=True, processing_time=True, fed_by=("Aggregate",))
    facts = replace(FACTS, operators=(operator, FACTS.operators[0]))
    with pytest.raises(PlanRejectedError, match=f"hands what Aggregate emits in the flush batch to {name}, and no batch") as refused:
        plan_query(DrainOptions(), facts)
    assert refused.value.reason == "StateWouldBeLost"
    assert plan_query(DrainOptions(state_loss_policy="Accept"), facts).flushes
    assert plan_query(DrainOptions(incomplete_windows="Discard"), facts)
    with pytest.raises(PlanRejectedError, match=r"no batch comes after .* or checkpoint\.policy 'Reseed', which needs no"):
        plan_query(DrainOptions(incomplete_windows="Discard", checkpoint_policy="Continue"), facts)
    assert plan_query(DrainOptions(mode="Stop"), facts)
    assert plan_query(DrainOptions(), replace(facts, operators=(replace(operator, fed_by=()),))).flushes
    by_events = replace(facts, operators=(replace(operator, processing_time=False),))
    if name.startswith("FlatMapGroups"):  # Spark fails the flush batch, and the drain is Stalled
        assert plan_query(DrainOptions(), by_events).flushes
    else:
        with pytest.raises(PlanRejectedError, match="no batch comes after"):
            plan_query(DrainOptions(), by_events)


def test_timers_that_were_set_in_the_flush_are_told() -> None:
    """With Continue they lie at the end of time in the state that goes on, whether rows are left or not."""
    name = "TransformWithStateInPySpark"
    planned = [OperatorReport(name=name, disposition="flushed"), OperatorReport(name="Aggregate", disposition="flushed")]
    left = measured(planned, (5, 7), (3, 0))
    assert residue(left, (4, 0), "Reseed") == (
        f"3 state rows of {name} are left with 4 timers that were set in the flush batch: only the archive keeps them",
    )
    assert residue(measured(planned, (5, 7), (0, 0)), (4, 0), "Reseed") == ()
    assert "never fires them" in residue(left, (4, 0), "Continue")[1]
    (warning,) = residue(measured(planned, (5, 7), (0, 0)), (4,), "Continue")
    assert warning.startswith(
        f"4 timers of {name} were set in the flush batch: those counted from its clock or watermark are set at the end"
    )


def test_state_with_a_time_to_live_expires_at_the_end_of_time() -> None:
    timers = LogicalOperator("TransformWithStateInPySpark", watermarked=True, timers=True)
    facts = replace(FACTS, operators=(timers, FACTS.operators[0]), state_expires=True)
    plan = plan_query(DrainOptions(state_loss_policy="Accept"), facts)
    assert [operator.disposition for operator in plan.operators] == ["forgotten", "flushed"]


def test_what_is_written_in_the_flush_with_a_time_to_live_is_said_not_to_expire() -> None:
    timers = LogicalOperator("TransformWithStateInPySpark", watermarked=True, timers=True, processing_time=True)
    facts = replace(FACTS, operators=(timers,), state_expires=True)
    for policy, said in (("Continue", 1), ("Reseed", 0)):
        plan = plan_query(DrainOptions(state_loss_policy="Accept", checkpoint_policy=policy), facts)
        assert sum("does not expire in the next version" in warning for warning in plan.warnings) == said


def test_rows_that_outlive_the_flush_are_residual() -> None:
    planned = [OperatorReport(name="a", disposition="flushed"), OperatorReport(name="b", disposition="forgotten")]
    found = measured(planned, (5, 7), (2, 7))
    assert [(operator.disposition, operator.rows_before, operator.rows_after) for operator in found] == [
        ("residual", 5, 2),
        ("forgotten", 7, 7),
    ]
    (warning,) = residue(found, (), "Reseed")
    assert warning == "2 state rows of a are left after every timer has fired: only the archive keeps them"
    assert "the next version finds them" in residue(found, (), "Continue")[0]
    assert residue(measured(planned, (), ()), (), "Reseed") == ()
    assert measured(planned, (5,), ())[0] == replace(planned[0], rows_before=5)
    assert measured(found, (), ()) == found, "what an earlier run has measured is lost"
    (kept,) = measured([OperatorReport(name="c", disposition="discarded")], (5,), (3,))
    assert kept.disposition == "residual"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Aggregate", "3 state rows of Aggregate are left whose windows end after the year 9999, which no watermark passes"),
        ("Join", "3 state rows of Join are left whose event time is null or after the year 9999, which no watermark passes"),
        ("FlatMapGroupsInPandasWithState", "3 state rows of FlatMapGroupsInPandasWithState are left after every timer has fired"),
    ],
)
def test_who_has_left_rows_is_said(name: str, said: str) -> None:
    """Windows and joins have no timers: what is left of them, Spark has left."""
    left = measured([OperatorReport(name=name, disposition="flushed")], (3,), (3,))
    assert residue(left, (), "Reseed") == (f"{said}: only the archive keeps them",)


@pytest.mark.parametrize(
    ("asked", "sink_class", "planned", "first_batch_id"),
    [
        ("Auto", KAFKA, "Reseed", 9),
        ("Auto", BATCHES, "Reseed", 9),
        ("Auto", FILES, "Reseed", 9),
        ("Auto", "", "Reseed", 9),
        ("Reseed", KAFKA, "Reseed", 9),
        ("Reseed", BATCHES, "Reseed", 9),
        ("Reseed", FILES, "Reseed", 9),
        ("Continue", KAFKA, "Continue", 9),
        ("Continue", FILES, "Continue", 9),
        ("Keep", FILES, "Keep", 9),
    ],
)
def test_checkpoint_policy_of_a_query_with_state(asked: str, sink_class: str, planned: str, first_batch_id: int) -> None:
    plan = plan_query(DrainOptions(checkpoint_policy=asked), replace(FACTS, sink_class=sink_class))
    assert (plan.checkpoint_policy, plan.first_batch_id(7)) == (planned, first_batch_id)


@pytest.mark.parametrize("sink_class", [KAFKA, BATCHES, FILES])
@pytest.mark.parametrize(("asked", "planned"), [("Auto", "Continue"), ("Reseed", "Reseed")])
def test_checkpoint_policy_of_a_query_without_state(asked: str, planned: str, sink_class: str) -> None:
    """Nothing in it could be incompatible; the sink has seen the last batch and no flush."""
    plan = plan_query(DrainOptions(checkpoint_policy=asked), replace(FACTS, operators=(), sink_class=sink_class))
    assert plan.checkpoint_policy == planned
    assert plan.first_batch_id(7) == 8


@pytest.mark.parametrize("windows", ["SideOutput", "Discard"])
def test_ids_go_on_at_the_flush_that_the_sink_has_not_seen(windows: str) -> None:
    plan = plan_query(DrainOptions(incomplete_windows=windows), replace(FACTS, sink_class=FILES))
    assert plan.first_batch_id(7) == 8


UNTESTED = replace(FACTS, sink_class=BATCHES, sink="foreachBatch", spark_version="5.0.0")
STATE_IDS = replace(FACTS, sink_class=FILES, sink="parquet", state_format="2")
JOIN = replace(FACTS, sink_class=FILES, sink="parquet", operators=(LogicalOperator("Join", watermarked=True),), join_format="3")
OWN_PROVIDER = replace(FACTS, sink_class=FILES, sink="parquet", state_provider="com.example.Provider")
OLDER = replace(UNTESTED, spark_version="3.5.9")
OLDER_ROCKSDB = replace(OLDER, state_provider="org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
OLDER_MEMORY = replace(OLDER, operators=(LogicalOperator("DeduplicateWithinWatermark", watermarked=False),))


@pytest.mark.parametrize("facts", [OLDER, OLDER_ROCKSDB, OLDER_MEMORY])
def test_other_releases_make_the_empty_state_too(facts: QueryFacts) -> None:
    options = DrainOptions(state_loss_policy="Accept")
    assert plan_query(options, facts).first_batch_id(7) == 9
    assert plan_query(options, facts).first_batch_id(7, discarded_ids=50) == 51


@pytest.mark.parametrize("facts", [UNTESTED, OWN_PROVIDER, STATE_IDS, JOIN])
def test_where_no_empty_state_can_be_made(facts: QueryFacts) -> None:
    assert plan_query(DrainOptions(state_loss_policy="Accept"), facts).checkpoint_policy == "Continue"
    restart = DrainOptions(checkpoint_policy="Reseed", accept_batch_id_restart=True, state_loss_policy="Accept")
    accepted = plan_query(restart, facts)
    assert (accepted.checkpoint_policy, accepted.first_batch_id(7)) == ("Reseed", 0)
    assert "batch ids start again at 0" in accepted.warnings[0]


def test_the_format_of_joins_matters_to_joins_only() -> None:
    assert plan_query(DrainOptions(), replace(FACTS, join_format="3")).checkpoint_policy == "Reseed"
    assert plan_query(DrainOptions(), replace(JOIN, join_format="2")).checkpoint_policy == "Reseed"


@pytest.mark.parametrize(("sink_class", "policy", "first"), [(KAFKA, "Reseed", 0), (DELTA, "Reseed", 0), (BATCHES, "Continue", 9)])
def test_ids_start_again_unasked_only_where_they_cannot_go_on(sink_class: str, policy: str, first: int) -> None:
    """And only for sinks that may have them again: an interrupted batch 0 would be repeated from the sources' beginning."""
    plan = plan_query(DrainOptions(), replace(UNTESTED, sink_class=sink_class))
    assert (plan.checkpoint_policy, plan.first_batch_id(7)) == (policy, first)
    assert any("until its first batch is committed" in warning for warning in plan.warnings) == (first == 0)


def test_a_restart_of_batch_ids_is_accepted_for_code_and_not_for_files() -> None:
    """Code may take ids that it has seen; the file sink never does, and needs no such word."""
    options = DrainOptions(checkpoint_policy="Reseed", accept_batch_id_restart=True)
    for sink_class in (KAFKA, DELTA, BATCHES):
        assert plan_query(options, replace(FACTS, sink_class=sink_class)).first_batch_id(7) == 0
    assert plan_query(options, replace(FACTS, sink_class=FILES)).first_batch_id(7) == 9


@pytest.mark.parametrize(("checkpoint_policy", "flushes"), [("Reseed", False), ("Continue", True), ("Keep", False)])
def test_discarded_state_is_flushed_only_where_batch_ids_go_on(checkpoint_policy: str, flushes: bool) -> None:
    options = DrainOptions(incomplete_windows="Discard", checkpoint_policy=checkpoint_policy, state_loss_policy="Accept")
    plan = plan_query(options, replace(FACTS, operators=(*FACTS.operators, DEDUPLICATES)))
    assert [operator.disposition for operator in plan.operators] == ["discarded", "forgotten"]
    assert plan.flushes is flushes


@pytest.mark.parametrize(
    ("output_mode", "operators", "side"),
    [
        ("Append", FACTS.operators, "Append"),
        ("Update", FACTS.operators, "Append"),
        ("Update", (LogicalOperator("Aggregate", watermarked=False),), "Update"),
        ("Update", (LogicalOperator("FlatMapGroupsInPandasWithState", watermarked=True, timers=True),), "Update"),
        ("Update", (*FACTS.operators, DEDUPLICATES), "Update"),
        ("Complete", FACTS.operators, "Complete"),
    ],
)
def test_output_mode_of_the_side_output(output_mode: str, operators: tuple[LogicalOperator, ...], side: str) -> None:
    assert side_output_mode(replace(FACTS, output_mode=output_mode, operators=operators)) == side


def test_a_query_without_state_is_not_flushed() -> None:
    assert not plan_query(DrainOptions(), replace(FACTS, operators=())).flushes


def test_stop_plans_nothing_for_the_checkpoint_and_forgets_no_state() -> None:
    plan = plan_query(DrainOptions(mode="Stop"), replace(FACTS, operators=(DEDUPLICATES,), sink="parquet"))
    assert (plan.checkpoint_policy, plan.flushes, plan.operators) == ("", False, ())


@pytest.mark.parametrize("trigger", ["AvailableNowTrigger", "OneTimeTrigger"])
def test_bounded_queries_are_waited_for_and_need_no_checkpoint(trigger: str) -> None:
    assert plan_query(DrainOptions(), replace(FACTS, trigger=trigger, checkpoint_location=None)).bounded
    assert plan_query(DrainOptions(mode="Stop"), replace(FACTS, trigger=trigger)).bounded


def test_without_a_checkpoint_location_keep_promises_no_continuation() -> None:
    assert plan_query(DrainOptions(checkpoint_policy="Keep"), replace(FACTS, checkpoint_location=None)).checkpoint_policy == "Keep"


def test_a_generation_that_only_the_agent_can_begin_is_warned_of() -> None:
    (warning,) = plan_query(DrainOptions(), replace(FACTS, sink_class=BATCHES)).warnings
    assert "start the next version under the agent" in warning
    assert plan_query(DrainOptions(checkpoint_policy="Continue"), FACTS).warnings == ()


def test_a_join_of_streams_is_warned_of_pairs_across_the_cut() -> None:
    *_, warning = plan_query(DrainOptions(), replace(FACTS, operators=(LogicalOperator("Join", watermarked=True),))).warnings
    assert "one half read before the drain and the other after it" in warning


@pytest.mark.parametrize(
    ("options", "facts", "reason", "way_out"),
    [
        (DrainOptions(), replace(FACTS, checkpoint_location=None), "UnsupportedQuery", "no checkpointLocation"),
        (DrainOptions(), replace(FACTS, checkpoint_location=None), "UnsupportedQuery", "set one, or use checkpoint.policy 'Keep'"),
        (DrainOptions(mode="Stop"), replace(FACTS, checkpoint_location=None), "UnsupportedQuery", "set one, or stop the application"),
        (DrainOptions(), replace(FACTS, checkpoint_location=None, sink="memory"), "UnsupportedQuery", "set one, or stop the application"),
        (DrainOptions(), replace(FACTS, trigger="ContinuousTrigger"), "UnsupportedQuery", "another trigger and a new checkpoint"),
        (DrainOptions(mode="Stop"), replace(FACTS, trigger="RealTimeTrigger"), "UnsupportedQuery", "restart it with another trigger"),
        (
            DrainOptions(),
            replace(FACTS, async_progress=True),
            "UnsupportedQuery",
            "asyncProgressTrackingCheckpointIntervalMs set to '0', and after two batches",
        ),
        (
            DrainOptions(),
            replace(FACTS, sink="memory"),
            "UnsupportedQuery",
            "use mode 'Stop', and another sink in the next version, one that",
        ),
        (DrainOptions(mode="CatchUp"), replace(FACTS, sink="memory", output_mode="Complete"), "UnsupportedQuery", "use mode 'Stop'"),
        (DrainOptions(checkpoint_policy="Keep"), replace(FACTS, checkpoint_location=None, sink="memory"), "UnsupportedQuery", "directly"),
        (DrainOptions(), replace(FACTS, operators=(DEDUPLICATES,)), "StateWouldBeLost", "set stateLossPolicy to 'Accept'"),
        (DrainOptions(), replace(FACTS, output_mode="Complete"), "StateWouldBeLost", "use mode 'Stop' to keep it"),
        (
            DrainOptions(state_loss_policy="Accept"),
            replace(FACTS, limits=Limits(in_batches=1, without_input=0, kept=2)),
            "UnsupportedQuery",
            "write a limit over a limit as one",
        ),
        (DrainOptions(checkpoint_policy="Reseed"), UNTESTED, "CheckpointPolicyUnsafe", "checkpoint.acceptBatchIdRestart"),
        (DrainOptions(checkpoint_policy="Continue", incomplete_windows="Discard"), replace(FACTS, sink_class=FILES), UNSAFE, "'Reseed'"),
        (DrainOptions(incomplete_windows="SideOutput"), OWN_PROVIDER, UNSAFE, "incompleteWindows.policy 'Emit'"),
        (DrainOptions(checkpoint_policy="Reseed"), STATE_IDS, "CheckpointPolicyUnsafe", "checkpointFormatVersion is 2"),
        (DrainOptions(checkpoint_policy="Reseed"), JOIN, "CheckpointPolicyUnsafe", "join.stateFormatVersion is 3"),
        (DrainOptions(checkpoint_policy="Reseed"), OWN_PROVIDER, "CheckpointPolicyUnsafe", "com.example.Provider"),
    ],
)
def test_refused_queries(options: DrainOptions, facts: QueryFacts, reason: str, way_out: str) -> None:
    with pytest.raises(PlanRejectedError) as refused:
        plan_query(options, facts)
    assert refused.value.reason == reason
    assert "query 'orders'" in str(refused.value)
    assert way_out in str(refused.value)


@pytest.mark.parametrize("policy", ["Discard", "SideOutput"])
def test_a_sink_that_may_record_every_batch_is_warned_of_where_the_flush_does_not_go_there(policy: str) -> None:
    """elasticsearch-hadoop, which does, could not merge its log any more, and is refused as the file sink is."""
    options = DrainOptions(checkpoint_policy="Continue", incomplete_windows=policy)
    warnings = plan_query(options, replace(FACTS, sink_class=BATCHES)).warnings
    assert sum("is not given the flush batch" in warning for warning in warnings) == 1
    for other in (replace(options, incomplete_windows="Emit"), replace(options, checkpoint_policy="Reseed")):
        assert not any("not given" in warning for warning in plan_query(other, replace(FACTS, sink_class=BATCHES)).warnings)
    assert not any("not given" in warning for warning in plan_query(options, FACTS).warnings)
    with pytest.raises(PlanRejectedError, match="the flush batch would be missing there"):
        plan_query(options, replace(FACTS, sink_class="org.elasticsearch.spark.sql.streaming.EsSparkSqlStreamingSink"))


def test_a_query_whose_checkpoint_goes_with_it_is_not_told_to_keep_its_state() -> None:
    facts = replace(FACTS, operators=(DEDUPLICATES,), checkpoint_location=None)
    with pytest.raises(PlanRejectedError, match=r"set stateLossPolicy to 'Accept'$"):
        plan_query(DrainOptions(checkpoint_policy="Keep"), facts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (DrainOptions(queries=("a",)), "queries 'a' may only be named with afterDrain 'Keep', not 'Suspend'"),
        (DrainOptions(queries=("a",), after_drain="Delete"), "afterDrain 'Keep', not 'Delete'"),
    ],
)
def test_refused_options(options: DrainOptions, words: str) -> None:
    with pytest.raises(PlanRejectedError) as refused:
        check_options(options)
    assert refused.value.reason == "UnsupportedOption"
    assert words in str(refused.value)


@pytest.mark.parametrize("options", [DrainOptions(), DrainOptions(mode="CatchUp"), DrainOptions(queries=("a",), after_drain="Keep")])
def test_accepted_options(options: DrainOptions) -> None:
    check_options(options)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("order#12", "order#13"),
        ("shop@1a2b", "shop@3c4d"),
        ("6f1c0000-1111-4222-8333-444455556666", "7f1c0000-1111-4222-8333-444455556666"),
    ],
)
def test_fingerprint_takes_each_word_as_it_is(first: str, second: str) -> None:
    """Also the owner's word for the version, such as an image with its digest."""
    assert fingerprint(first, "4.2.0") == fingerprint(first, "4.2.0") != fingerprint(second, "4.2.0")
    assert fingerprint(first, "4.2.0") != fingerprint(first, "4.1.0")


@pytest.mark.parametrize("mode", ["Drain", "Stop"])
@pytest.mark.parametrize(
    ("sink", "output_mode", "told"), [("memory", "Append", True), ("memory", "Complete", False), ("noop", "Append", False)]
)
def test_that_the_memory_sink_cannot_start_again_is_told(mode: str, sink: str, output_mode: str, told: bool) -> None:
    plan = plan_query(DrainOptions(mode=mode), replace(FACTS, sink=sink, output_mode=output_mode, operators=[]))
    assert any("with another sink" in warning for warning in plan.warnings) is told
    assert any("one that does not write files" in warning for warning in plan.warnings) is (told and mode == "Stop")
