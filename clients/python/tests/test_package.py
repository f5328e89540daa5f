"""The package: it is typed, it is tidy, and what is built of it can be installed and used."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

PACKAGE = Path(__file__).parents[1]


def python(*arguments: str | Path, folder: Path = PACKAGE, program: str | Path = sys.executable) -> str:
    # Bytecode and caches would be written into the checkout.
    ran = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, f"{arguments}:\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def test_every_type_is_checked(tmp_path: Path) -> None:
    python("-m", "mypy", "--cache-dir", tmp_path)


def test_the_source_is_tidy() -> None:
    python("-m", "ruff", "check", "--no-cache")
    python("-m", "ruff", "format", "--check", "--no-cache")


def test_modules_are_small() -> None:
    for source in PACKAGE.rglob("*.py"):
        assert len(source.read_text().splitlines()) <= 300, source


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "hatchling", "build", "-d", folder)
    [wheel], [source] = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    return wheel, source


def test_what_is_built_is_whole(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, source = built
    names = zipfile.ZipFile(wheel).namelist()
    modules = {str(path.relative_to(PACKAGE / "src")) for path in (PACKAGE / "src").rglob("*.py")}
    assert modules <= set(names)
    assert "haft_client/py.typed" in names
    assert not [name for name in names if not name.startswith("haft_client")]
    metadata = next(zipfile.ZipFile(wheel).read(name).decode() for name in names if name.endswith("METADATA"))
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert required == ["Requires-Dist: httpx<1,>=0.27"]
    assert "License-Expression: MIT OR Apache-2.0" in metadata
    for text in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith(text) for name in names)

    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    python("-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", folder=unpacked)
    [again] = (tmp_path / "again").glob("*.whl")
    assert zipfile.ZipFile(again).namelist() == names, "the source distribution has everything that the wheel needs"


def test_the_licences_are_those_of_the_repository() -> None:
    root = PACKAGE.parents[1]
    if not (root / "LICENSE-MIT").is_file():
        pytest.skip("the package is not in the repository")
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (PACKAGE / name).read_bytes() == (root / name).read_bytes()


def test_the_wheel_installs_and_calls(built: tuple[Path, Path], tmp_path: Path, server: Server) -> None:
    wheels = os.environ.get("HAFT_WHEELS")
    if not wheels:
        pytest.skip("HAFT_WHEELS does not name a folder with httpx and what it needs")
    python("-m", "venv", tmp_path / "venv")
    inside = tmp_path / "venv/bin/python"
    python("-m", "pip", "install", "-q", "--no-index", "--find-links", wheels, built[0], program=inside)
    script = "from haft_client import Haft; import haft_client; print(haft_client.__file__); "
    script += f"print(Haft({server.url!r}, {server.caller!r}).call('read_file', {{'path': 'README.md'}}).text)"
    # `-I`: nothing of this environment's own packages is seen.
    said = python("-I", "-c", script, program=inside, folder=tmp_path)
    assert said.startswith(str(tmp_path / "venv"))
    assert "# Waves" in said
