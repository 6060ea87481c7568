"""What the native adapters share: who they are, and their connections."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256

from thinkwell.models.presets import Address
from thinkwell.models.provider_http import ProviderClient
from thinkwell.models.provider_response import Endpoint

_KEY_HEADERS = ("authorization", "x-api-key", "api-key")
"""Where providers look for the key. Other headers make no other account."""


class NativeModel:
    """A model reached over HTTP by an adapter of ours."""

    def __init__(self, model_id: str, client: ProviderClient) -> None:
        self._model_id = model_id
        self._client = client

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

    @cached_property
    def limit_key(self) -> str:
        """Which API key at which address: its calls share `ModelLimits`."""
        endpoint = self._client.endpoint
        said = {name.lower(): value for name, value in endpoint.headers.items()}
        keys = [said.get(name, "") for name in _KEY_HEADERS]
        return sha256(repr((endpoint.base_url, keys)).encode()).hexdigest()[:16]

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The model can be used again."""
        await self._client.aclose()


def connect(
    provider: str,
    path: str,
    address: Address,
    *,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    ca_file: str | None = None,
) -> ProviderClient:
    """The connections to `path` at a provider's address."""
    return ProviderClient(
        Endpoint(
            provider=provider,
            base_url=address.base_url,
            path=path,
            headers={**address.headers, **(headers or {})},
            key_variable=address.key_variable,
            url_variable=address.url_variable,
            proxy=proxy,
            ca_file=ca_file,
        )
    )
