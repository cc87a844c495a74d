"""`python -m tests.chaos --minutes N --seed S [--catalog sqlite|postgresql]`: hit an installation, and hold it to its promises.

Everything runs as separate processes on free ports, below a folder of its own, which is kept where something was broken. A seed
tells what is hit when; how the processes take it is up to the machine. It ends with status 0 if nothing was broken.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.chaos.fleet import POSTGRESQL
from tests.chaos.storm import storm
from worker.exit import run


async def main() -> int:
    """Go through one storm, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", POSTGRESQL), default="sqlite")
    parser.add_argument("--keep", action="store_true", help="keep the folder in any case")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="horarium-chaos-"))
    print(f"Seed {asked.seed}, {asked.catalog}, in {folder}.", flush=True)
    result = await storm(
        folder,
        seconds=60 * asked.minutes,
        seed=asked.seed,
        catalog=asked.catalog,
        say=lambda line: print(line, flush=True),
    )
    print(result.told())
    if result.breaches:
        return 1
    if not asked.keep:
        shutil.rmtree(folder)
    print("Nothing was broken.")
    return 0


if __name__ == "__main__":
    run(main())
