"""What a PipelineDrain says and what the operator says about it; no input or output."""
