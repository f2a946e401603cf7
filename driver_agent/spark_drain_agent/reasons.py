"""Reasons in drain reports: CamelCase, stable, each one a section of docs/troubleshooting.md."""

from typing import Final

UNSUPPORTED_OPTION: Final = "UnsupportedOption"
UNSUPPORTED_QUERY: Final = "UnsupportedQuery"
UNKNOWN_QUERY: Final = "UnknownQuery"
STATE_WOULD_BE_LOST: Final = "StateWouldBeLost"
CHECKPOINT_POLICY_UNSAFE: Final = "CheckpointPolicyUnsafe"
MALFORMED_NOTIFICATION: Final = "MalformedNotification"
PLANNED: Final = "Planned"
AWAITING_APPROVAL: Final = "AwaitingApproval"
WITHDRAWN: Final = "Withdrawn"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
QUERY_FAILED: Final = "QueryFailed"
FLUSH_FAILED: Final = "FlushFailed"
CHECKPOINT_UNWRITABLE: Final = "CheckpointUnwritable"
RECOVERY_NEEDS_PREVIOUS_VERSION: Final = "RecoveryNeedsPreviousVersion"
INTERNAL_ERROR: Final = "InternalError"
