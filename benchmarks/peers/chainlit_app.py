"""chainlit with the OpenAI client: a message over socket.io, tokens back over the same socket.

No agent, no storage; the conversation is in the memory of the process. A message's text names the
model.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import logging
import os

import chainlit as cl
from openai import AsyncOpenAI

logging.getLogger().setLevel(logging.WARNING)  # a line per request is no part of the comparison
client = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="none")


@cl.on_message
async def answer(message: cl.Message) -> None:
    """One turn."""
    history = [{"role": "system", "content": "You are a careful assistant."}]
    history += cl.chat_context.to_openai()
    stream = await client.chat.completions.create(
        model=message.content, messages=history, stream=True
    )
    reply = cl.Message(content="")
    async for part in stream:
        if part.choices and (token := part.choices[0].delta.content):
            await reply.stream_token(token)
    await reply.update()
