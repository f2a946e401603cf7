"""PipelineDrain: its spec, its status, and the steps from the request to the end."""
