"""The wheel, installed where nothing of this folder is visible, does what README promises.

The packages that it needs come from the environment that runs the tests; `make package` installs
them, and each extra, from the package index instead.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from .docs.pages import same_output

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Seconds; the first run compiles, and the machine may be busy.
PATIENCE = 600


def _run(*command, folder):
    """The output of a command that sees neither this folder nor the user's settings."""
    hidden = ("PYTHON", "VIRTUAL_ENV")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder)]
    # The build backend comes from the package index.
    done = subprocess.run([*pip, str(ROOT)], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("the build backend cannot be downloaded here")
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The programs of an environment with the wheel in it."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install"]
    _run(*pip, "--quiet", "--no-deps", "--no-index", wheel, folder=home)
    (packages,) = home.glob("lib/python*/site-packages")
    # A folder that is added in this way does not bring its own links to source folders.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    where = "import jigsaw_crl; print(jigsaw_crl.__file__)"
    assert _run(python, "-c", where, folder=home).startswith(str(packages))
    return home / "bin"


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "jigsaw_crl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = set(zipfile.ZipFile(wheel).namelist())
    inside = {name for name in held if name.startswith("jigsaw_crl/")}
    assert inside == files
    assert "jigsaw_crl/py.typed" in inside
    others = {name.split("/")[0] for name in held - inside}
    assert len(others) == 1
    assert others.pop().endswith(".dist-info")


def test_the_installed_demo_writes_its_report(installed, tmp_path):
    said = _run(installed / "jigsaw", "demo", folder=tmp_path)
    (report,) = tmp_path.rglob("report.html")
    assert str(report.name) in said
    assert report.stat().st_size > 10_000


def test_the_installed_package_runs_the_fifteen_lines(installed, tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    code, shown = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, re.S)[0]
    (tmp_path / "lines.py").write_text(code, "utf-8")
    said = _run(installed / "python", "-W", "error", "lines.py", folder=tmp_path)
    assert same_output(shown, said)


def test_the_classifiers_name_the_python_versions_that_the_workflow_tries():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    named = {c.removeprefix(prefix) for c in project["classifiers"] if c.startswith(prefix)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (tried,) = re.findall(r"python-version: \[(.*)\]", workflow)
    assert {v.strip(' "').removeprefix("3.") for v in tried.split(",")} == named
    assert project["requires-python"] == f">=3.{min(map(int, named))}"


def test_workflows_run_actions_of_one_commit_and_install_what_is_locked_by_hash():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text("utf-8")
        used = re.findall(r"uses: (\S+)", text)
        assert used
        for action in used:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), (path.name, action)
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8").replace("\\\n", "").splitlines()
    for line in (x for x in lines if x and not x.startswith("#")):
        assert re.match(r"\S+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
    assert "--require-hashes" in (ROOT / "Makefile").read_text("utf-8")
