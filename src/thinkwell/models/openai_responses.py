"""The native adapter for OpenAI's responses API.

`openai_responses_request.py` builds the body, `openai_responses_stream.py` reads the answer, and
`provider_http.py` has the connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import ModelEvent, ModelRequest
from thinkwell.models.native import NativeModel, connect
from thinkwell.models.openai_responses_request import PROVIDER, build_body
from thinkwell.models.openai_responses_stream import ResponseStream
from thinkwell.models.presets import look_up


class OpenAIModel(NativeModel):
    """A model behind OpenAI's responses API, or a server that speaks it."""

    supports_response_format = True
    """Its text can be bound to a JSON schema."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """`base_url` and `api_key` default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`."""
        address = look_up(PROVIDER, model_id, base_url=base_url, api_key=api_key)
        client = connect(
            PROVIDER, "/responses", address, headers=headers, proxy=proxy, ca_file=ca_file
        )
        super().__init__(model_id, client)

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        return self._client.stream(self._build, ResponseStream(), request, signal)

    def _build(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return build_body(request, model_id=self.model_id)
