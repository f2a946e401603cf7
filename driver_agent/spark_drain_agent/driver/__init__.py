"""What PySpark and the application's threads see of the agent."""
