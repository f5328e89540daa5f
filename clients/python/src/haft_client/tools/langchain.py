"""Tools for LangChain and LangGraph. Needs `langchain-core`: `pip install haft-client[langchain]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import HaftError
from ._provider import FOR_A_MODEL, text_of

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

    from .._json import Object
    from ..async_client import AsyncHaft
    from ..client import Haft
    from ..models import Definitions, Result
    from ..options import Context, How


def langchain_tools(client: Haft, *names: str, context: Context | None = None) -> list[StructuredTool]:
    """Tools that call haft. Without names: those that a model is listed."""
    exported = client.definitions("mcp", *names)

    def tool(definition: Object) -> StructuredTool:
        name, how = definition["name"], _how(context)

        def run(**arguments: Any) -> tuple[str, Any]:
            try:
                return _answer(client.call(name, arguments, **how))
            except HaftError as error:
                raise _for_the_model(error) from error

        return _tool(definition, func=run)

    return _tools(exported, tool)


async def async_langchain_tools(client: AsyncHaft, *names: str, context: Context | None = None) -> list[StructuredTool]:
    """Tools that call haft, for `ainvoke`."""
    exported = await client.definitions("mcp", *names)

    def tool(definition: Object) -> StructuredTool:
        name, how = definition["name"], _how(context)

        async def run(**arguments: Any) -> tuple[str, Any]:
            try:
                return _answer(await client.call(name, arguments, **how))
            except HaftError as error:
                raise _for_the_model(error) from error

        return _tool(definition, coroutine=run)

    return _tools(exported, tool)


# LangGraph evaluates the annotations of the functions above when it makes a `ToolNode`: they name nothing that is not
# there when the program runs.


def _how(context: Context | None) -> How:
    return {"context": context, "options": FOR_A_MODEL}


def _answer(result: Result) -> tuple[str, Result]:
    """What the model reads, and the result for programs (`artifact` of the message)."""
    return text_of(result), result


def _for_the_model(error: HaftError) -> Exception:
    """A call that failed is the model's affair; a server that cannot be reached is not."""
    from langchain_core.tools import ToolException

    return error if error.result is None else ToolException(text_of(error.result))


def _tools(exported: Definitions, make: Any) -> list[StructuredTool]:
    return [make(definition) for definition in exported.tools]


def _tool(definition: Object, **run: Any) -> StructuredTool:
    from ._langchain_tool import HaftTool

    return HaftTool(
        name=definition["name"],
        description=definition.get("description", ""),
        args_schema=definition["inputSchema"],
        response_format="content_and_artifact",
        handle_tool_error=True,
        **run,
    )
