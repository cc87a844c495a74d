"""Sample folders for the check: three good deliveries and one fault of each kind."""

import os
import shutil
import time
from pathlib import Path

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.json"
SCHEDULE = HERE / "schedule.yaml"
AGED = "payments/payments-2026-11-24.csv"
"""The sample file that `prepare` makes older than the manifest allows."""

_THREE_DAYS = 3 * 86_400


def prepare(folder: Path) -> None:
    """Write the sample files below `folder`, just delivered but for `AGED`, which was last written three days ago."""
    now = time.time()
    for source in sorted((HERE / "data").rglob("*.csv")):
        name = source.relative_to(HERE / "data")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        written = now - _THREE_DAYS if name.as_posix() == AGED else now
        os.utime(target, (written, written))
