"""One `haft serve` on loopback for the whole session, with its own home and its own folder."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from haft_client import AsyncHaft, Haft

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")

CONFIG = """
[tools.approval]
accept_from = ["http"]
denylist = []

[tools.commands]
ask = "never"

[[policy.rules]]
name = "commands"
effect = "allow"
tool = "run_command"
"""


def haft_program() -> Path:
    """The program under test."""
    named = os.environ.get("HAFT_BIN") or shutil.which("haft")
    if named is None:
        pytest.exit("HAFT_BIN does not name the program `haft`, and none is on the path", returncode=2)
    return Path(named).resolve()


@dataclass
class Server:
    """A server, and where it works."""

    folder: Path
    url: str = ""
    #: Secrets of a key that makes calls, and of one that answers questions.
    caller: str = ""
    answerer: str = ""
    process: subprocess.Popen[str] | None = None

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def socket(self) -> Path:
        return self.home / ".local/state/haft/haft.sock"

    def environment(self) -> dict[str, str]:
        path = f"{haft_program().parent}:/usr/bin:/bin"
        return {"HOME": str(self.home), "PATH": path, "HAFT_URL": self.url, "HAFT_KEY": self.caller}

    def haft(self, *arguments: str) -> str:
        ran = subprocess.run(
            [haft_program(), *arguments],
            cwd=self.work,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            text=True,
            capture_output=True,
            check=False,
        )
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def key(self, right: str) -> str:
        return self.haft("keys", "create", right, "--role", "admin", "--right", right)

    def start(self, address: str = "127.0.0.1:0") -> None:
        self.process = subprocess.Popen(
            [haft_program(), "serve", "--listen", address],
            cwd=self.work,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"serving at .*(http://\S+)", line):
                self.url = found[1]
                return
        raise AssertionError(f"haft serve ended: {said}")

    def stop(self) -> int:
        assert self.process is not None
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.process.stderr.close()
        return code


def make_server(folder: Path) -> Server:
    server = Server(folder)
    server.work.mkdir()
    (server.home / ".config/haft").mkdir(parents=True)
    (server.home / ".config/haft/haft.toml").write_text(CONFIG)
    (server.work / "README.md").write_text("# Waves\n")
    server.caller, server.answerer = server.key("invoke"), server.key("approve")
    server.start()
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that most tests share."""
    server = make_server(tmp_path_factory.mktemp("haft"))
    yield server
    assert server.stop() == 0


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may stop."""
    server = make_server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def haft(server: Server) -> Iterator[Haft]:
    """A client that makes calls."""
    with Haft(server.url, server.caller) as client:
        yield client


@pytest.fixture
def person(server: Server) -> Iterator[Haft]:
    """A client that answers questions."""
    with Haft(server.url, server.answerer) as client:
        yield client


@pytest.fixture
def run_async(server: Server) -> Callable[[Callable[[AsyncHaft], Coroutine[Any, Any, T]]], T]:
    """Runs a coroutine with a client that makes calls."""

    def run(test: Callable[[AsyncHaft], Coroutine[Any, Any, T]]) -> T:
        async def with_client() -> T:
            async with AsyncHaft(server.url, server.caller) as client:
                return await asyncio.wait_for(test(client), 60)

        return asyncio.run(with_client())

    return run


@pytest.fixture(scope="session")
def jail(server: Server) -> None:
    """Skips a test that runs a command where this machine has no jail to run it in."""
    with Haft(server.url, server.caller) as client:
        answer = client.batch([_true()])[0]
    if answer.error is not None and answer.error.code == "SANDBOX_CREATION_FAILED":
        pytest.skip(f"no jail on this machine: {answer.error.message}")
    assert answer.ok, answer.text


def _true() -> Any:
    from haft_client import Call

    return Call("run_command", {"command": "true"})
