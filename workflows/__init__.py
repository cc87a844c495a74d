"""The durable part: a workflow per activation and a workflow per run. Thin on purpose; the judgement is in `horarium`."""
