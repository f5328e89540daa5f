"""Examples of the README, of docs/python.md and of examples/python run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripted_model import ScriptedModel

if TYPE_CHECKING:
    from conftest import Server

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[1]
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))
#: What stands on a page for an address and a key.
PLACEHOLDER = '"http://127.0.0.1:8484", "haft_…"'


def fences(page: str) -> str:
    """Every example in Python, one after the other."""
    found = re.findall(r"^```python.*?\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found, "the page has no example"
    return "\n".join(found).replace(PLACEHOLDER, "")


def run(script: str, server: Server) -> str:
    """Run a program in the folder of the server, as a person would."""
    with ScriptedModel() as model:
        more = {"HAFT_ANSWER_KEY": server.answerer, "PYTHONPATH": str(PACKAGE / "src")}
        ran = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", script],
            cwd=server.work,
            env={**server.environment(), **model.environment(), **more},
            text=True,
            capture_output=True,
            check=False,
            timeout=120,
        )
    assert ran.returncode == 0, f"{script}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.mark.skipif(not EXAMPLES, reason="examples/python is in the repository, not in the package")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, server: Server) -> None:
    assert "It says: # Waves" in run(example.read_text(), server)


def test_the_readme_runs(server: Server) -> None:
    script = fences((PACKAGE / "README.md").read_text())
    checks = "\nprint('OK', messages[-1]['content'][0]['content'][0]['text'], results[0].content)"
    assert "OK # Waves\n # Waves" in run(script + checks, server)


@pytest.mark.skipif(not (ROOT / "docs/python.md").is_file(), reason="docs is in the repository, not in the package")
def test_the_page_runs(server: Server) -> None:
    said = run(fences((ROOT / "docs/python.md").read_text()), server)
    for words in [
        "read_file Success # Waves",
        "needs_approval",
        "EXECUTION_FAILED",
        "tool:executed",
        "completed # Waves",
    ]:
        assert words in said, said
    assert (server.work / "note.txt").read_text() == "hello\n"
