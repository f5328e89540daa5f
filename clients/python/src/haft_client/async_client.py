"""The client for asyncio: `Haft` with `await`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from . import _operations as ops
from . import _wire as wire
from ._following import Source, never
from .async_groups import AsyncApprovals, AsyncBatches, AsyncExecutions, AsyncTasks
from .async_streams import AsyncCallStream, AsyncEventStream
from .errors import NotReachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._json import Object
    from .models import BatchResult, Definitions, Page, Plan, Result
    from .options import Call, Context, Dialect, How, Options

T = TypeVar("T")


class AsyncHaft:
    """Calls tools through `haft serve`. A call whose task is cancelled is cancelled in haft, too.

    `url` is its address, or `unix:` and the path of its socket; `key` is the secret of an API key. Where absent they
    are `HAFT_URL` and `HAFT_KEY`. `timeout` is how many seconds the answer to a call may take beyond the call's own
    timeout, and `retries` how often a GET is sent again after a failure. No other request is sent twice.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, timeout: float = 600, retries: int = 2
    ) -> None:
        """Connect with the first request."""
        self._settings = wire.Settings.of(url, key, timeout, retries)
        socket = self._settings.socket
        self._http = httpx.AsyncClient(
            base_url=self._settings.base_url,
            headers=self._settings.headers(),
            transport=httpx.AsyncHTTPTransport(uds=socket) if socket else None,
        )
        #: Calls that go on without their caller.
        self.tasks = AsyncTasks(self)
        #: Questions to people.
        self.approvals = AsyncApprovals(self)
        #: Calls that were made, and those that run.
        self.executions = AsyncExecutions(self)
        #: Batches that run.
        self.batches = AsyncBatches(self)

    async def __aenter__(self) -> Self:
        """Use the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **how: Unpack[How]) -> Result:
        """Make one call and return its result, or raise why it did not succeed."""
        return (await self._send(ops.call(name, arguments, how))).check()

    async def batch(
        self,
        calls: Iterable[Call],
        *,
        strategy: str | None = None,
        continue_on_failure: bool | None = None,
        batch_id: str | None = None,
        idempotency_key: str | None = None,
        context: Context | None = None,
        options: Options | None = None,
    ) -> BatchResult:
        """Make several calls that haft plans together. Each has its own result; none of them raises."""
        return await self._send(
            ops.batch(
                calls,
                strategy=strategy,
                continue_on_failure=continue_on_failure,
                batch_id=batch_id,
                idempotency_key=idempotency_key,
                context=context,
                options=options,
            )
        )

    def stream(self, name: str, arguments: Mapping[str, Any] | None = None, **how: Unpack[How]) -> AsyncCallStream:
        """Make one call and watch it. `result()` of the stream is what `call` returns."""
        id_ = how.get("execution_id") or ops.new_id()
        how["execution_id"] = id_

        async def ended() -> Result:
            result = (await self.executions.get(id_)).result
            if result is None:
                raise NotReachable("NOT_REACHABLE", f"The connection broke, and haft has no result of {id_}")
            return result

        first = ops.call(name, arguments, how)
        return AsyncCallStream(self._open, first, id_, ended, lambda reason: self.executions.cancel(id_, reason))

    async def plan(self, name: str, arguments: Mapping[str, Any] | None = None, **how: Unpack[How]) -> Plan:
        """Say what would happen to a call: it would run, a person would be asked, it would be refused."""
        return await self._send(ops.plan(name, arguments, how))

    async def tools(
        self, text: str | None = None, *, after: str | None = None, limit: int | None = None
    ) -> Page[Object]:
        """List the tools that the caller may call, by name; those with `text` in their name or description."""
        return await self._send(ops.tools(text, after, limit))

    async def tool(self, name: str) -> Object:
        """Return the definition of one tool."""
        return await self._send(ops.tool(name))

    async def search_tools(self, query: str, *, limit: int | None = None) -> list[Object]:
        """Find tools by what they are for, best first."""
        return await self._send(ops.search_tools(query, limit))

    async def definitions(self, dialect: Dialect, *names: str) -> Definitions:
        """Return tools as a model's provider takes them: those of these names, or those that a model is listed."""
        return await self._send(ops.definitions(dialect, names))

    def events(self, *, after: str | None = None) -> AsyncEventStream:
        """Watch all calls and batches of the tenant, from now on. The stream has no end."""
        return AsyncEventStream(self._open, Source("/v1/events", never), after)

    async def read_output(self, handle: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Read an output that was too long for its result, 4 MiB at most at once."""
        return await self._send(ops.output(handle, offset, length))

    async def me(self) -> Object:
        """Say who the caller is: tenant, agent, roles, rights."""
        return await self._send(ops.me())

    async def _send(self, operation: ops.Operation[T]) -> T:
        """Send a request and read its answer."""
        for failures in range(1, self._settings.retries + 2):
            response: httpx.Response | None = None
            try:
                response = await self._http.request(**wire.request(operation, self._settings))
            except httpx.TransportError as error:
                pause = wire.pause_before_retry(operation, self._settings, failures, None)
                if pause is None:
                    raise wire.unreachable(error) from error
            else:
                pause = wire.pause_before_retry(operation, self._settings, failures, response)
                if pause is None:
                    return wire.answer(operation, response)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt has no pause")

    async def _open(self, operation: ops.Operation[Any]) -> httpx.Response:
        """Send a request whose answer is a stream of events."""
        request = self._http.build_request(**wire.request(operation, self._settings, "text/event-stream"))
        response = await self._http.send(request, stream=True)
        if not response.is_success:
            await response.aread()
            await response.aclose()
            raise wire.problem(response)
        return response
