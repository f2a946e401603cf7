"""What the operator and the driver agent share: messages and the store that carries them.

The idea is Samza's coordinator stream (SEP-31, SEP-22): a small key-value store with a namespace per message type, written by one
side and watched by the other. Standard library only, because it is installed into users' driver images.
"""

from spark_drain_store.channel import Channel, absolute_location, open_channel
from spark_drain_store.messages import (
    MOST_EXECUTOR_EXCEPTIONS,
    DrainNotification,
    DrainReport,
    DrainState,
    ExecutorException,
    ExecutorState,
    MalformedMessageError,
    OperatorReport,
    QueryReport,
    WithdrawalAnswer,
)
from spark_drain_store.options import DrainOptions, UnsupportedOptionError
from spark_drain_store.protocol import (
    ConflictError,
    EntryTooLargeError,
    MetadataStore,
    Snapshot,
    StoreError,
    StoreUnavailableError,
)

__all__ = [
    "MOST_EXECUTOR_EXCEPTIONS",
    "Channel",
    "ConflictError",
    "DrainNotification",
    "DrainOptions",
    "DrainReport",
    "DrainState",
    "EntryTooLargeError",
    "ExecutorException",
    "ExecutorState",
    "MalformedMessageError",
    "MetadataStore",
    "OperatorReport",
    "QueryReport",
    "Snapshot",
    "StoreError",
    "StoreUnavailableError",
    "UnsupportedOptionError",
    "WithdrawalAnswer",
    "absolute_location",
    "open_channel",
]
