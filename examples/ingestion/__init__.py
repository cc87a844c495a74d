"""An agent worth running unattended: it checks that the files of last night arrived, are fresh and can be loaded.

    HORARIUM_EXAMPLE_ROOT=FOLDER horarium worker agents examples.ingestion

`manifest.json` is its input, `schedule.yaml` a schedule for it, `data/` small files with one fault of each kind. It
needs no model and no network. What may be set for a profile of it is in `config.py`.
"""

from examples.ingestion.agent import IngestionCheck

agents = [IngestionCheck()]

__all__ = ["IngestionCheck", "agents"]
