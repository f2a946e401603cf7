"""``python -m spark_drain_agent demo``: a real drain on this machine, from the first event to the ledger."""
