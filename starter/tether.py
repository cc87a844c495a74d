"""Become another program, and die with the process that started it, even if that one is killed outright.

Run as `python -I -S tether.py PARENT PROGRAM [ARGUMENT …]`, on Linux. The kernel is asked to kill this process when its
parent dies; the request survives `exec`, so the program needs to know nothing of it and keeps this process id.

This is a step between fork and program, and not a `preexec_fn`: Python code that runs between fork and exec can
deadlock in a process that has threads, and a process that used the Temporal SDK always has some.

The kernel means the *thread* that started us. Start children from a thread that lives as long as the process.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From Linux's <sys/prctl.h>; see https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html."""

NOT_EXECUTABLE = 127
"""What a shell answers when there is no such program."""


def main(parent: int, command: list[str]) -> int:
    """Tie this process to `parent` and become `command`; returns only if that failed."""
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        print("The kernel refused to tie this process to its parent.", file=sys.stderr)
        return 1
    if os.getppid() != parent:  # it died before we asked, and the kernel will not tell us
        return 1
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the program is what we are for
    except OSError as error:
        print(f"Cannot run {command[0]!r}: {error.strerror}.", file=sys.stderr)
        return NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
