"""What the states of a SparkApplication mean."""

import pytest
from spark_drain_operator.applications.kubeflow import activity_of
from spark_drain_operator.applications.protocol import Activity


@pytest.mark.parametrize(
    ("state", "suspend", "activity"),
    [
        ("", False, Activity.STARTING),
        ("", True, Activity.SUSPENDED),
        ("SUBMITTED", False, Activity.STARTING),
        ("SUBMISSION_FAILED", False, Activity.STARTING),
        ("RUNNING", False, Activity.RUNNING),
        ("RUNNING", True, Activity.RUNNING),
        ("UNKNOWN", False, Activity.RUNNING),
        ("SUSPENDING", True, Activity.STOPPING),
        ("SUSPENDED", True, Activity.SUSPENDED),
        ("SUSPENDED", False, Activity.STARTING),
        ("RESUMING", False, Activity.STARTING),
        ("PENDING_RERUN", False, Activity.STARTING),
        ("INVALIDATING", False, Activity.STARTING),
        ("FAILING", False, Activity.STOPPING),
        ("SUCCEEDING", False, Activity.STOPPING),
        ("COMPLETED", False, Activity.ENDED),
        ("FAILED", False, Activity.ENDED),
        ("A_LATER_VERSION", False, Activity.STARTING),
    ],
)
def test_what_a_state_of_kubeflow_means(state: str, suspend: bool, activity: Activity) -> None:
    assert activity_of(state, suspend_requested=suspend) is activity
