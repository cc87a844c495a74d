"""What the repository holds is for everybody: nothing in it belongs to one machine."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Built from pieces, so that this file does not hold what it looks for.
HOMES = re.compile(
    "|".join(["/" + "home" + r"/\w", "/" + "Users" + r"/\w", "/" + "root" + r"/\w", r"C:\\+" + "Users" + r"\\+\w"])
)

LOCK_FILES = re.compile(r".*\.lockb?|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.ya?ml")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no checkout, so there is no saying which files are ours")
    return [REPOSITORY / name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


def homes_in(path: Path) -> list[str]:
    """The lines of a text file that name somebody's home folder; none if it is no text."""
    content = path.read_bytes()
    if b"\0" in content:
        return []
    return [line for line in content.decode(errors="replace").splitlines() if HOMES.search(line)]


def test_no_tracked_file_names_a_home_folder():
    found = {str(path.relative_to(REPOSITORY)): homes_in(path) for path in tracked()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_lock_file_is_tracked():
    """Lock files record where packages were downloaded from; ours are pinned in constraints.txt."""
    assert [path for path in tracked() if LOCK_FILES.fullmatch(path.name)] == []


@pytest.mark.parametrize(
    "folder", ["/" + "home" + "/ada", "/" + "Users" + "/ada", "/" + "root" + "/x", "C:\\" + "Users" + "\\ada"]
)
def test_a_home_folder_would_be_found(tmp_path, folder):
    (tmp_path / "text").write_text(f"cd {folder}/work\nls\n")
    assert homes_in(tmp_path / "text") == [f"cd {folder}/work"]


@pytest.mark.parametrize(
    "name", ["uv.lock", "poetry.lock", "Cargo.lock", "bun.lockb", "package-lock.json", "pnpm-lock.yaml"]
)
def test_a_lock_file_would_be_found(name):
    assert LOCK_FILES.fullmatch(name)


@pytest.mark.parametrize("name", ["lock.py", "constraints.txt", "package.json", "test_lock.py"])
def test_a_file_about_locks_is_none(name):
    assert not LOCK_FILES.fullmatch(name)
