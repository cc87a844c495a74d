"""Archives that are being written, and what is left of those whose process was killed.

The folder of one that is written is locked by whoever writes it (`flock`). The lock ends with the process, however that ends.
"""

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".unfinished-"
"""Before the id of an archive, what its folder is called until it is whole."""
OLD: Final = timedelta(days=1)
"""How long nothing was written to what is left of one. On storage of several machines a lock may be seen on one alone."""
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF})
_NAME: Final = re.compile(re.escape(UNFINISHED) + r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder that an archive is written to, where its storage knows locks.

    Raises `OSError`, and `BlockingIOError` where somebody else holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(descriptor)


def killed_archives(to: Path, *, now: datetime) -> list[Path]:
    """What is left in a folder of archives whose process was killed: nobody writes it, and nobody did for a day."""
    return [each for each in sorted(to.glob(f"{UNFINISHED}*")) if _NAME.fullmatch(each.name) and _is_left(each, now)]


def _is_left(folder: Path, now: datetime) -> bool:
    try:
        with held(folder):
            written_at = max(each.lstat().st_mtime for each in (folder, *folder.iterdir()))
    except OSError:
        return False  # held, no folder, gone meanwhile, or somebody else's
    return written_at < (now - OLD).timestamp()
