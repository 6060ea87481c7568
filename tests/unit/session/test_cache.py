"""Contents by version: what is old is not read, decoded or converted twice (DESIGN §5)."""

from __future__ import annotations

from tests.unit.session.conftest import text
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.session.cache import CachedMessage, MessageCache
from thinkwell.session.session import Session


class TestReadingThroughTheCache:
    async def test_a_second_read_fetches_no_content(self, session, put, store, monkeypatch):
        await put("m1", "m2")
        first = await session.get_recent_history(10_000)
        asked: list[str] = []
        fetch_all = store.fetch_all

        async def spy(query, params):
            asked.append(query)
            return await fetch_all(query, params)

        monkeypatch.setattr(store, "fetch_all", spy)
        second = await session.get_recent_history(10_000)
        assert asked == []  # nor the rows: the whole path was read before
        assert [m.message for m in second.messages] == [m.message for m in first.messages]
        assert second.messages[0].message is first.messages[0].message

    async def test_an_update_is_seen(self, session, put):
        await put("m1")
        await session.get_history()
        await session.update_message(text("m1", "new"))
        assert (await session.get_history())[0]["parts"][0]["text"] == "new"

    async def test_model_messages_are_made_once_per_version(self, session, put):
        await put("m1")
        (stored,) = (await session.get_recent_history(1)).messages
        made = session.cache.model_messages(stored)
        assert made == (UserMessage((TextContent("m1"),)),)
        assert session.cache.model_messages(stored) is made
        await session.update_message(text("m1", "new"))
        (changed,) = (await session.get_recent_history(1)).messages
        assert session.cache.model_messages(changed) == (UserMessage((TextContent("new"),)),)

    async def test_a_message_that_is_not_kept_is_converted_all_the_same(self, session, put):
        await put("m1")
        (stored,) = (await session.get_recent_history(1)).messages
        converted = MessageCache().converted(stored, lambda message: message["id"], variant="id")
        assert converted == "m1"


class TestBounds:
    def test_the_least_recently_used_goes_first(self):
        cache = MessageCache(max_entries=2)
        for seq in (1, 2):
            cache.put(seq, entry("x"))
        cache.get(1, 1)
        cache.put(3, entry("x"))
        assert [cache.get(seq, 1) is not None for seq in (1, 2, 3)] == [True, False, True]

    def test_the_sum_of_the_texts_is_bounded(self):
        cache = MessageCache(max_bytes=3 * entry("x" * 30).weight)
        for seq in range(10):
            cache.put(seq, entry("x" * 30))
        assert cache.size == 3

    def test_a_newer_version_takes_the_place_of_the_old_one(self):
        cache = MessageCache(max_bytes=2 * entry("x" * 60).weight)
        cache.put(1, entry("x" * 60))
        cache.put(1, CachedMessage(2, "y" * 60, None))
        assert (cache.get(1, 1), cache.size) == (None, 1)
        assert cache.get(1, 2) is not None

    def test_one_that_would_push_the_others_out_is_not_kept(self):
        cache = MessageCache(max_bytes=4 * entry("x" * 600).weight)
        cache.put(1, entry("x" * 600))
        cache.put(2, entry("x" * 6000))
        assert [cache.get(seq, 1) is not None for seq in (1, 2)] == [True, False]


class TestSharing:
    async def test_an_empty_cache_is_shared_all_the_same(self, store):
        """Falsy or not: every agent of a host reads through the host's cache."""
        shared = MessageCache()
        sessions = [Session(store, agent, cache=shared) for agent in ("a", "b")]
        assert [session.cache is shared for session in sessions] == [True, True]


def entry(content):
    return CachedMessage(1, content, None)
