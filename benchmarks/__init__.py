"""What we claim to be fast, measured beside its peers in one run: `python -m benchmarks`."""
