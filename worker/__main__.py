"""`python -m worker [schedules] [runs]` and `python -m worker agents MODULE`."""

import sys

from worker.exit import run
from worker.logs import configure
from worker.processes import serve, serve_agents
from worker.settings import load

USAGE = """\
usage: python -m worker [schedules] [runs]     both, where neither is named
       python -m worker agents MODULE          the agents in MODULE's list `agents`
Settings come from the environment: HORARIUM_DATA, HORARIUM_CATALOG, HORARIUM_ORGANIZATION, HORARIUM_ENVIRONMENT,
TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and the Temporal SDK's other variables."""


async def _main(arguments: list[str]) -> int:
    match arguments:
        case ["-h" | "--help"]:
            print(USAGE)  # noqa: T201 - help goes to stdout
        case ["agents", module]:
            await serve_agents(load(), module, command=f"python -m worker agents {module}")
        case roles if set(roles) <= {"schedules", "runs"}:
            await serve(load(), list(dict.fromkeys(roles)) or ["schedules", "runs"])
        case _:
            print(USAGE, file=sys.stderr)  # noqa: T201 - as above
            return 2
    return 0


if __name__ == "__main__":
    configure()
    run(_main(sys.argv[1:]))
