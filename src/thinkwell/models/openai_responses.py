"""The native adapter for OpenAI's responses API.

`openai_responses_request.py` builds the body, `openai_responses_stream.py` reads the answer,
`openai_background.py` takes up answers that OpenAI keeps, `provider_http.py` has the connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from thinkwell.core.signal import AbortSignal
from thinkwell.models import openai_background
from thinkwell.models.base import ModelEvent, ModelRequest
from thinkwell.models.native import NativeModel, connect
from thinkwell.models.openai_background import BackgroundStream
from thinkwell.models.openai_responses_request import PROVIDER, build_body, is_kept
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
        background: bool = False,
    ) -> None:
        """`base_url` and `api_key` default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`.

        With `background` OpenAI stores answers and goes on with them by itself, so that a turn that
        was cut takes up the same answer instead of paying for another.
        """
        address = look_up(PROVIDER, model_id, base_url=base_url, api_key=api_key)
        client = connect(
            PROVIDER, "/responses", address, headers=headers, proxy=proxy, ca_file=ca_file
        )
        super().__init__(model_id, client)
        self._background = background

    def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        kept = is_kept(request, background=self._background)
        reader = BackgroundStream() if kept else ResponseStream()
        return self._client.stream(self._build, reader, request, signal)

    def resume(
        self, token: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
    ) -> AsyncIterator[ModelEvent]:
        """Go on with an answer that OpenAI keeps. See `ResumableModel`."""
        return openai_background.take_up(self._client, token, request, signal)

    async def cancel(self, token: Mapping[str, Any]) -> None:
        """Stop an answer that OpenAI goes on with. See `ResumableModel`."""
        await openai_background.cancel(self._client, token)

    def _build(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        kept = is_kept(request, background=self._background)
        return build_body(request, model_id=self.model_id, background=kept)
