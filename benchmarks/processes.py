"""What a process takes of this machine, as the Linux kernel tells it."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def resident_kib(pid: int) -> int:
    """The memory of a process that is in the machine's, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0])
    raise ProcessLookupError(f"Process {pid} has no memory: it has ended.")


def cpu_seconds(pid: int) -> float:
    """The time on a core that a process has taken since it began, its own and the kernel's for it."""
    # The name of the program, in brackets, may hold spaces; the 14th and 15th fields are the times.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
