"""The same echo, on the official Python SDK, for crates/haft-mcp/benches/stdio.rs."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Says it again"""
    return text


server.run(transport="stdio")
