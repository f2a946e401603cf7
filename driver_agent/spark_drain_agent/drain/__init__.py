"""One drain, from its notification to the moment the driver may go."""
