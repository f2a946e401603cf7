"""The command line: run a script under the agent, look after a checkpoint."""
