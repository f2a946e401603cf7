"""The session in which the agent starts a query of the application."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.driver.streams import writer
from tests.agent.harness import Feed
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("late", [True, False])
def test_tables_are_found_by_the_catalogs_of_the_application(warm: Warm, tmp_path: Path, late: bool) -> None:
    """Iceberg's keep the tables that they have found: what another one has written was not seen by an application that asked often."""
    session, catalog = warm.session, "spark.sql.catalog.mine"
    Feed(tmp_path / "input").add()
    session.conf.set(catalog, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    session.conf.set(f"{catalog}.url", f"jdbc:derby:memory:{tmp_path.name};create=true")
    try:
        internals = SparkInternals(session)
        asked = internals.capture(writer(session, tmp_path, "q"), table="mine.shop.orders")
        application = internals.java_session()
        if late:
            found = internals.starting_session(internals.cloned_session(), application)
            assert found.streams() == application.streams()
        else:
            found = internals.cloned_session()
            internals.in_session(asked, found, listeners=False)
        assert found.sessionState().catalogManager().catalog("mine") == application.sessionState().catalogManager().catalog("mine")
    finally:
        session.conf.unset(catalog)
        session.conf.unset(f"{catalog}.url")
