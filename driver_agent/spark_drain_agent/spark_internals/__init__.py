"""Every private Spark class and attribute that the agent touches."""
