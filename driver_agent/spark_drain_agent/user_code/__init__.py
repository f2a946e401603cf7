"""What the application's own code can ask of the agent, and be asked by it."""
