"""What is told while something is measured."""

import sys


def tell(sentence: str) -> None:
    """Say how far it is, to people: figures come only at the end of many minutes."""
    print(sentence, file=sys.stderr, flush=True)
