"""The native adapter for OpenAI-compatible chat completions.

`openai_chat_request.py` builds the body, `openai_chat_stream.py` reads the answer, and
`provider_http.py` has the connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import ModelEvent, ModelRequest
from thinkwell.models.native import NativeModel, connect
from thinkwell.models.openai_chat_request import COMPATIBLE, OPENAI, Dialect, build_body
from thinkwell.models.openai_chat_stream import ChatStream
from thinkwell.models.presets import PRESETS, look_up


class OpenAIChatModel(NativeModel):
    """A model behind an OpenAI-compatible chat-completions endpoint."""

    supports_response_format = True
    """Its text can be bound to a JSON schema."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str = "openai-chat",
        headers: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`base_url` and `api_key` default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`.

        `provider` may be one of the presets, whose address, variables and dialect then hold.
        """
        address = look_up(provider, model_id, base_url=base_url, api_key=api_key)
        client = connect(
            provider, "/chat/completions", address, headers=headers, proxy=proxy, ca_file=ca_file
        )
        super().__init__(model_id, client)
        if provider in PRESETS:
            usual = PRESETS[provider].dialect
        else:
            usual = COMPATIBLE if address.moved else OPENAI
        self._dialect = dialect or usual

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        return self._client.stream(self._build, ChatStream(self.provider), request, signal)

    def _build(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return build_body(
            request, model_id=self.model_id, provider=self.provider, dialect=self._dialect
        )
