"""The drain agent: lives in a PySpark driver and drains its streaming queries when asked to.

Run an unmodified application under it with ``python -m spark_drain_agent app.py``, or call `attach` with a session before the first
query is started.
"""

from spark_drain_agent.driver.attach import attach
from spark_drain_agent.user_code.batch_marks import generation, is_drain_pane
from spark_drain_agent.user_code.callbacks import DrainContext, on_drain

__all__ = ["DrainContext", "attach", "generation", "is_drain_pane", "on_drain"]
