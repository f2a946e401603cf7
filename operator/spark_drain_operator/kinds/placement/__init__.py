"""ExecutorPlacements: one executor is moved or restarted while the application runs on."""
