"""What may be written as an output: the rule for its name and its size, for the agent's side and for whoever stores it."""

import re

from horarium.errors import Refused

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""The largest single output. What is larger belongs where the agent's data live, with a reference in the report."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def check_output(name: str, size: int) -> None:
    """Raise `Refused` for an output that is not stored: `output_name`, or `output_too_large` beyond `MAX_OUTPUT_BYTES`.

    A name is a file name of letters, digits and `. _ -`, beginning with a letter or digit, of at most 200 characters.
    """
    if not _NAME.fullmatch(name):
        sentence = f"{name[:80]!r} is no name for an output: it is 1 to 200 letters, digits and . _ -, and no folder."
        raise Refused("output_name", sentence, next_step="Begin with a letter or a digit, as in report.md.")
    if size > MAX_OUTPUT_BYTES:
        sentence = f"The output {name!r} has {size:,} bytes; at most {MAX_OUTPUT_BYTES:,} are written."
        raise Refused("output_too_large", sentence, next_step="Write it where your data live, and report a reference.")
