"""What is said of archives where a list begins with what is still in the catalog."""

import sys
from collections.abc import Sequence

from horarium.schedule.archived import in_words
from starter.cli.place import Document
from starter.cli.printing import printable


def say_archived(found: Sequence[Document]) -> None:
    """Say on stderr which archives may hold what stood before; nothing where there are none."""
    if found:
        print(printable(in_words(found)), file=sys.stderr)
