"""The native adapter for OpenAI-compatible chat completions.

`openai_chat_request.py` builds the body, `openai_chat_stream.py` reads the answer, and
`provider_http.py` has the connections.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import ModelEvent, ModelRequest
from thinkwell.models.openai_chat_request import build_body
from thinkwell.models.openai_chat_stream import ChatStream
from thinkwell.models.provider_http import Endpoint, ProviderClient

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIChatModel:
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
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`base_url` and `api_key` default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`."""
        self._model_id = model_id
        url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        self._is_openai = url == OPENAI_URL
        key = api_key if api_key is not None else os.environ.get("OPENAI_API_KEY", "")
        if self._is_openai and not key:
            raise ConfigurationError(
                f"The model {model_id!r} needs a key. Set OPENAI_API_KEY, pass api_key=..., "
                "or point OPENAI_BASE_URL at a server that needs none."
            )
        self._client = ProviderClient(
            Endpoint(
                provider=provider,
                base_url=url,
                path="/chat/completions",
                headers={**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})},
                key_variable="OPENAI_API_KEY" if api_key is None else "",
                url_variable="OPENAI_BASE_URL" if base_url is None else "",
                proxy=proxy,
                ca_file=ca_file,
            )
        )

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._client.endpoint.provider

    @property
    def model_id(self) -> str:
        """The provider's name for the model."""
        return self._model_id

    @property
    def base_url(self) -> str:
        """Where the requests go."""
        return self._client.endpoint.base_url

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The model can be used again."""
        await self._client.aclose()

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        return self._client.stream(self._build, ChatStream(self.provider), request, signal)

    def _build(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return build_body(
            request, model_id=self._model_id, provider=self.provider, is_openai=self._is_openai
        )
