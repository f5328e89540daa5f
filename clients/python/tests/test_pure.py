"""What needs no server: reading events, deciding about retries, and the tables that the document has, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import haft_client._operations as ops
from haft_client import Definitions, NotReachable, options
from haft_client._following import Following, Source, is_end_of_batch
from haft_client._help import HELP
from haft_client._sse import Parser
from haft_client._wire import Settings, pause_before_retry, problem
from haft_client.errors import BY_CODE, HaftError, Overloaded, error_for

ROOT = Path(__file__).parents[3]


def document() -> Any:
    path = ROOT / "docs/openapi.json"
    if not path.is_file():
        pytest.skip("docs/openapi.json is in the repository, not in the package")
    return json.loads(path.read_text())


def test_every_code_of_the_document_has_an_exception_and_help() -> None:
    codes = set(document()["components"]["schemas"]["ErrorCode"]["enum"])
    assert set(BY_CODE) == codes
    assert set(HELP) == codes | {"NOT_REACHABLE", "WAIT_TIMEOUT", "BAD_ANSWER"}
    assert type(error_for("NEWER_THAN_THIS", "x")) is HaftError


@pytest.mark.parametrize(
    ("ours", "theirs", "elsewhere"),
    [
        (options.Options, "CallOptions", {"detached", "executionId"}),
        (options.Context, "Context", set()),
        (options.Remember, "RememberBody", set()),
    ],
)
def test_options_are_those_of_the_document(ours: Any, theirs: str, elsewhere: set[str]) -> None:
    assert set(ours.__annotations__) | elsewhere == set(document()["components"]["schemas"][theirs]["properties"])


def test_every_request_is_one_of_the_document() -> None:
    made: list[ops.Operation[Any]] = [
        ops.call("x", None, {}),
        ops.plan("x", None, {}),
        ops.batch([]),
        ops.tools("a", "b", 1),
        ops.tool("x"),
        ops.search_tools("x", 1),
        ops.definitions("mcp", ("x",)),
        ops.me(),
        ops.task("x", 1),
        ops.tasks(state="failed", open=True, tool="x", after="x", limit=1),
        ops.cancel_task("x"),
        ops.approvals("open"),
        ops.approval("x"),
        ops.approve("x", None),
        ops.running(),
        ops.executions(tool="x", agent="x", batch="x", status="x", after="x", limit=1),
        ops.execution("x"),
        ops.cancel("executions", "x", None),
        ops.cancel("batches", "x", None),
        ops.output("x", 1, 1),
    ]
    known = document()["paths"]
    for one in made:
        path = next(path for path in (one.path, *known) if path in known and matches(path, one.path))
        route = known[path][one.method.lower()]
        assert set(one.params) <= {parameter["name"] for parameter in route.get("parameters", [])}, path


def matches(template: str, path: str) -> bool:
    parts = list(zip(template.split("/"), path.split("/"), strict=False))
    return template.count("/") == path.count("/") and all(a == b or (a.startswith("{") and b == "x") for a, b in parts)


def test_ids_are_written_so_that_they_stay_one_part_of_the_path() -> None:
    assert ops.task("../keys?x=1").path == "/v1/tasks/..%2Fkeys%3Fx%3D1"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_from_pieces_of_any_size(size: int) -> None:
    data = json.dumps({"message": "a\u2028b\x85c", "data": {}}, ensure_ascii=False)
    wire = f"id: 0-1\n\n: alive\n\nevent: tool:output\r\ndata: {data}\r\nid: 7\r\n\r\nevent: x\ndata: {{\ndata: }}\n\n"
    raw = wire.encode()
    parser = Parser()
    events = [event for at in range(0, len(raw), size) for event in parser.feed(raw[at : at + size])]
    assert [(event.name, event.id) for event in events] == [("", "0-1"), ("tool:output", "7"), ("x", None)]
    assert events[1].message == "a\u2028b\x85c"


def settings(retries: int = 2) -> Settings:
    return Settings("http://x", None, None, 600, retries)


def test_only_a_get_is_sent_again_and_not_for_ever() -> None:
    get, post = ops.me(), ops.call("x", None, {})
    busy = httpx.Response(503, headers={"Retry-After": "3"})
    assert pause_before_retry(get, settings(), 1, busy) == 3
    assert pause_before_retry(get, settings(), 1, None) == 0.2
    assert pause_before_retry(get, settings(), 3, busy) is None
    assert pause_before_retry(get, settings(retries=0), 1, busy) is None
    assert pause_before_retry(get, settings(), 1, httpx.Response(404)) is None
    for answer in (busy, None):
        assert pause_before_retry(post, settings(), 1, answer) is None


def test_problems_are_read_and_answers_of_others_are_said_to_be_such() -> None:
    raw = {"code": "RATE_LIMITED", "detail": "Too many", "retryable": True}
    busy = problem(httpx.Response(429, json=raw, headers={"Retry-After": "2"}))
    assert isinstance(busy, Overloaded)
    assert (busy.retry_after, busy.status, busy.retryable) == (2, 429, True)
    assert problem(httpx.Response(502, text="<html>")).code == "BAD_ANSWER"


def test_a_stream_is_given_up_after_some_attempts() -> None:
    following = Following(Source("/v1/batches/x/events", is_end_of_batch))
    following.opened()
    for _ in range(4):
        assert following.pause(None) > 0
    with pytest.raises(NotReachable):
        following.pause(None)


def test_parameters_get_their_own_names_back() -> None:
    raw = {"tools": [], "remarks": [], "unlisted": 0, "renamed": {"list_files": {"_top_9b6aca59": "$top"}}}
    definitions = Definitions.of(raw)
    assert definitions.arguments_back("list_files", {"_top_9b6aca59": 5, "path": "x"}) == {"$top": 5, "path": "x"}
    assert definitions.arguments_back("other", {"_top_9b6aca59": 5}) == {"_top_9b6aca59": 5}
    assert definitions.arguments_back("list_files", "no object") == "no object"
