"""The runbook's own words: blocks of commands that tests run as they stand there."""

import re

from tests.deploy.product import DEPLOY

TEXT = (DEPLOY / "RUNBOOK.md").read_text()
_BLOCK = re.compile(r"^<!-- run: (?P<name>[a-z ]+) -->\n```sh\n(?P<script>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {match["name"]: match["script"] for match in _BLOCK.finditer(TEXT)}
"""The commands by the name that is in the comment above them."""
