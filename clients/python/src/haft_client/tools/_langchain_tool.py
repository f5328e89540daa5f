"""The class of tools for LangChain. Importing it needs `langchain-core`."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool


class HaftTool(StructuredTool):
    """A tool whose arguments may have any name.

    LangChain hands its own `config` and `run_manager` to tools that take them, in place of arguments of the same name.
    """

    def _run(self, /, *_: Any, **arguments: Any) -> Any:
        if self.func is None:
            raise NotImplementedError("This tool is for `ainvoke`: `langchain_tools` makes one for `invoke`")
        return self.func(**arguments)

    async def _arun(self, /, *_: Any, **arguments: Any) -> Any:
        if self.coroutine is None:
            return await BaseTool._arun(self, **arguments)
        return await self.coroutine(**arguments)
