"""The command line. Each command is thin: it reads what a person wrote, calls the control plane, and shows the answer.

Nothing of Temporal is imported before a command needs it: `horarium validate` has to answer at once.
"""

from starter.cli.commands import app


def main() -> None:
    """Run one command and leave the process with its status: 0 done, 1 refused or false, 2 not understood."""
    app(prog_name="horarium")
