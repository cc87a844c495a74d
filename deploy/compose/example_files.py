"""What the example agent needs in the data folder: the files that it checks, its manifest, and where its reports go."""

# ruff: noqa: INP001 - it is run by its path, in a container

import shutil

from examples.ingestion import sample
from worker.settings import load

settings = load()
files = settings.data / "example-files"
if not files.exists():
    sample.prepare(files)
manifest = settings.content.inputs / "ingestion" / "manifest.json"
if not manifest.exists():
    manifest.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(sample.MANIFEST, manifest)
(settings.content.outputs / "ingestion-reports").mkdir(parents=True, exist_ok=True)
