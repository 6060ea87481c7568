"""What an agent remembers beside its messages: context blocks and where their text comes from."""

from thinkwell.session.blocks.providers import ContextProvider
from thinkwell.session.blocks.records import BlockVersion, ContextBlock

__all__ = ["BlockVersion", "ContextBlock", "ContextProvider"]
