"""An agent with a runner of its own, which a test may stop without stopping the others."""

from tests.end_to_end.agents import Scripted


class Patient(Scripted):
    """Its runs take longer than its runner's grace."""

    name = "patient"


agents = [Patient()]
