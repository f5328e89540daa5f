"""Tools of haft as the SDKs of models take them: definitions for the request, and `run` for what the model asks for.

haft makes the definitions (`/v1/definitions`), runs all calls of a message as one batch, and says in the message for
the model why a call failed or that it waits for a person.
"""

from ._provider import AsyncModelTools, ModelTools
from .anthropic import anthropic_tools, async_anthropic_tools
from .langchain import async_langchain_tools, langchain_tools
from .openai import async_openai_responses_tools, async_openai_tools, openai_responses_tools, openai_tools

__all__ = [
    "AsyncModelTools",
    "ModelTools",
    "anthropic_tools",
    "async_anthropic_tools",
    "async_langchain_tools",
    "async_openai_responses_tools",
    "async_openai_tools",
    "langchain_tools",
    "openai_responses_tools",
    "openai_tools",
]
