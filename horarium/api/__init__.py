"""The HTTP API over the control plane (DESIGN.md, section 11): `create_app` in `horarium.api.app` makes it.

It reads and writes the catalog and needs nothing else: publication and reads work while Temporal and the workers are down.
"""
