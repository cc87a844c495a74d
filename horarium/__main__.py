"""Where the commands `horarium` and `python -m horarium` begin.

The command line lives in `starter`, which is part of the application and not of the published library. So it is looked up
by name here, and a library without its application says so.
"""

import importlib
import sys


def main() -> None:
    """Run the command line; exit 2 with a sentence where only the library is installed."""
    try:
        command_line = importlib.import_module("starter.cli")
    except KeyboardInterrupt:  # before any command was read
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in {"starter", "starter.cli", "typer", "temporalio", "rich", "yaml"}:
            raise
        sys.exit(
            f"horarium: {error.name!r} is not installed here. The command line runs from a checkout of the project: "
            "run `make venv` there and use .venv/bin/horarium."
        )
    command_line.main()


if __name__ == "__main__":
    main()
