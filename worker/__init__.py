"""The processes that carry schedules and runs: how they are set up, composed and left."""
