"""Things to run: agents with their input, and schedules for them."""
