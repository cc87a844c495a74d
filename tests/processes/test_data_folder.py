"""The folder of an installation: it can be written, and one process at a time has it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from starter.data_folder import DataFolder, make_writable


def test_entering_makes_the_folder_with_its_parents_and_logs(tmp_path):
    with DataFolder(tmp_path / "a" / "b") as folder:
        assert folder.path == tmp_path / "a" / "b"
        assert folder.logs.is_dir()
        assert (folder.path / "horarium.lock").read_text() == f"{os.getpid()}\n"
    assert [path.name for path in folder.path.iterdir() if path.name.startswith(".writable")] == []


def test_a_relative_folder_means_the_same_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = DataFolder(Path("data"))
    monkeypatch.chdir("/")
    assert folder.path.parent == tmp_path


def test_a_folder_that_cannot_be_written_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "file").write_text("a regular file, below which there is no folder, not even for root")
    path = tmp_path / "file" / "data"
    expected = f"Cannot write to the folder {str(path)!r}: Not a directory. Make it writable, or name another one with --data DIR."
    with pytest.raises(Misconfigured, match=re.escape(expected)), DataFolder(path):
        pass
    with pytest.raises(Misconfigured, match=re.escape(expected)):
        make_writable(path)


def test_two_at_once_on_one_folder_refuse_each_other_by_process_id(tmp_path):
    with (
        DataFolder(tmp_path),
        pytest.raises(Misconfigured, match=f"in use by process {os.getpid()}"),
        DataFolder(tmp_path),
    ):
        pass


def test_a_refusal_leaves_the_lock_with_its_holder(tmp_path):
    with DataFolder(tmp_path):
        for _ in range(2):
            with pytest.raises(Misconfigured, match="in use"), DataFolder(tmp_path):
                pass


def test_the_folder_is_free_again_after_its_holder_left(tmp_path):
    for _ in range(3):
        with DataFolder(tmp_path):
            pass


def test_a_holder_that_was_killed_holds_nothing(tmp_path):
    text = (
        "import pathlib, sys, time; from starter.data_folder import DataFolder\n"
        "with DataFolder(pathlib.Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Misconfigured, match=f"process {holder.pid}"), DataFolder(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
    with DataFolder(tmp_path):
        assert (tmp_path / "horarium.lock").read_text() == f"{os.getpid()}\n"


def test_children_do_not_inherit_the_lock(tmp_path):
    with DataFolder(tmp_path):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with DataFolder(tmp_path):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()
