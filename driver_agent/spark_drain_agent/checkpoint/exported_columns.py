"""The columns of exported state: what Spark's reader of state shows, with names that Parquet can tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

__all__ = ["distinct_names", "exportable", "with_distinct_names"]


def exportable(state: DataFrame) -> DataFrame:
    """Return state as it can be written to Parquet: by distinct names, and without the key of what has none.

    Two buffers of an aggregation have one name where two of its functions are alike, as two sums, and so have two grouping expressions.
    """
    fields = [field for field in state.schema.fields if field.dataType != StructType([])]
    return state.select(*(state[field.name].cast(with_distinct_names(field.dataType)).alias(field.name) for field in fields))


def with_distinct_names(kind: DataType) -> DataType:
    """Return a type whose structures, however deep, have no two fields of one name; each field keeps its place."""
    if isinstance(kind, StructType):
        names = distinct_names(kind.names)
        return StructType(
            [StructField(name, with_distinct_names(field.dataType), field.nullable) for name, field in zip(names, kind.fields, strict=True)]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(with_distinct_names(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(with_distinct_names(kind.keyType), with_distinct_names(kind.valueType), kind.valueContainsNull)
    return kind


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names that differ by more than case: the first of a name keeps it, others end in ``_2``, ``_3``, ..."""
    found: list[str] = []
    taken: set[str] = set()
    asked = {name.lower() for name in names}
    for name in names:
        new, number = name, 1
        while new.lower() in taken or (number > 1 and new.lower() in asked):
            number += 1
            new = f"{name}_{number}"
        taken.add(new.lower())
        found.append(new)
    return found
