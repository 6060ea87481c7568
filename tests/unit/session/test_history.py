"""Reading: paths, the window at the end of one, batches, damaged rows (spec/03 §2, §12)."""

from __future__ import annotations

import re

import pytest

from tests.unit.session.conftest import ids, text
from thinkwell.core.errors import CorruptTreeError
from thinkwell.session.history import LONG_PATH
from thinkwell.session.session import Session
from thinkwell.store.queries import statements
from thinkwell.store.sqlite import SqliteStore


class Counting:
    """A reader that remembers which query gave how many rows."""

    def __init__(self, store):
        self.store = store
        self.seen: list[tuple[str, int]] = []

    async def fetch_all(self, query, params):
        rows = await self.store.fetch_all(query, params)
        self.seen.append((query, len(rows)))
        return rows

    async def fetch_one(self, query, params):
        self.seen.append((query, 1))
        return await self.store.fetch_one(query, params)


def raw(store):
    """The connection below a store, to damage what no public call can damage."""
    return store.transaction()._link._connection


async def chain(session, count, size=0):
    await session.add_messages([text(f"m{n}", "x" * size) for n in range(count)])


class TestPaths:
    @pytest.mark.parametrize("count", [50, 51, 120])
    async def test_they_are_complete_and_in_order(self, session, count):
        """Case 10."""
        await chain(session, count)
        assert ids(await session.get_history()) == [f"m{n}" for n in range(count)]

    async def test_contents_come_in_batches_of_50_rows(self, session, store):
        await chain(session, 120)
        reader = Counting(store)
        await session.get_history(reader=reader)
        contents = [rows for query, rows in reader.seen if query == "message_contents"]
        assert contents == [50, 50, 20]

    async def test_contents_come_in_batches_of_4_mib(self, session, store):
        """Case 10: four rows of 1.5 MB need more than one query."""
        await chain(session, 4, size=1_500_000)
        reader = Counting(store)
        history = await session.get_history(reader=reader)
        assert [len(message["parts"][0]["text"]) for message in history] == [1_500_000] * 4
        contents = [rows for query, rows in reader.seen if query == "message_contents"]
        assert contents == [2, 2]

    async def test_a_long_path_is_read_in_the_background_and_complete(self, tmp_path):
        store = SqliteStore(tmp_path / "a.db")
        await store.open()
        session = Session(store, "a")
        await chain(session, LONG_PATH + 1)
        assert len(await session.get_history()) == LONG_PATH + 1
        await store.close()

    async def test_ids_with_quotes_and_unicode_are_just_ids(self, session, put):
        strange = ["it's", '"q"', "漢\n", "%(x)s", ":id"]
        await put(*strange)
        assert ids(await session.get_history()) == strange

    async def test_history_is_a_copy(self, session, put):
        await put("m1")
        (await session.get_history())[0]["parts"].clear()
        assert (await session.get_history())[0]["parts"] != []


class TestDamage:
    @pytest.mark.parametrize("content", ["{", "[]", '{"id": 1, "role": "user", "parts": []}'])
    async def test_a_row_that_is_no_message_is_skipped_and_its_link_works(
        self, session, put, store, content
    ):
        """Case 11."""
        await put("m1", "m2", "m3")
        raw(store).execute("UPDATE messages SET content = ? WHERE id = 'm2'", (content,))
        assert ids(await session.get_history()) == ["m1", "m3"]
        assert await session.get_message("m2") is None

    async def test_a_cycle_raises_instead_of_walking_for_ever(self, session, put, store):
        await put("m1", "m2", "m3")
        raw(store).execute("UPDATE messages SET parent_id = 'm3' WHERE id = 'm1'")
        with pytest.raises(CorruptTreeError, match="'m1'"):
            await session.get_history()
        with pytest.raises(CorruptTreeError):
            await session.get_recent_history(10_000)

    async def test_a_cycle_does_not_stop_deleting(self, session, put, store):
        await put("m1", "m2", "m3")
        raw(store).execute("UPDATE messages SET parent_id = 'm3' WHERE id = 'm1'")
        assert await session.delete_branch("m1") == 3
        await put("again")
        assert ids(await session.get_history()) == ["again"]

    async def test_a_missing_parent_raises(self, session, put, store):
        await put("m1", "m2")
        raw(store).execute("DELETE FROM messages WHERE id = 'm1'")
        with pytest.raises(CorruptTreeError, match="'m1' is missing"):
            await session.get_history()


class TestTheWindow:
    async def test_an_empty_session_gives_an_empty_window(self, session):
        recent = await session.get_recent_history(100)
        assert (recent.messages, recent.truncated, recent.total_content_bytes) == ([], False, 0)

    async def test_a_huge_leaf_comes_alone(self, session):
        """Case 71."""
        await chain(session, 3, size=5000)
        recent = await session.get_recent_history(1)
        assert [m.id for m in recent.messages] == ["m2"]
        assert recent.truncated

    async def test_min_recent_goes_over_the_budget(self, session):
        """Case 71."""
        await chain(session, 10, size=1000)
        recent = await session.get_recent_history(2048, 4)
        assert [m.id for m in recent.messages] == ["m6", "m7", "m8", "m9"]

    async def test_the_longest_end_that_fits_is_taken(self, session):
        await chain(session, 10, size=1000)
        sizes = [stats.bytes for stats in await session.get_history_row_stats()]
        recent = await session.get_recent_history(sum(sizes[-5:]))
        assert [m.id for m in recent.messages] == [f"m{n}" for n in range(5, 10)]
        assert recent.total_content_bytes == sum(sizes)

    async def test_a_short_path_comes_whole(self, session):
        await chain(session, 3)
        recent = await session.get_recent_history(1, min_recent=10)
        assert ([m.id for m in recent.messages], recent.truncated) == (["m0", "m1", "m2"], False)

    async def test_records_carry_place_version_and_sizes(self, session, put):
        await put("m1", "m2")
        await session.update_message(text("m2", "new"))
        (stored,) = (await session.get_recent_history(1)).messages
        assert (stored.id, stored.parent_id, stored.version, stored.depth) == ("m2", "m1", 2, 2)
        assert stored.bytes == len(stored.text)
        assert stored.tokens > 0
        assert stored.message == text("m2", "new")

    async def test_it_starts_at_the_active_leaf_or_at_a_given_one(self, session, put):
        await put("m1", "m2", "m3")
        await session.set_active_leaf("m2")
        assert (await session.get_recent_history(1)).messages[0].id == "m2"
        assert (await session.get_recent_history(1, leaf_id="m3")).messages[0].id == "m3"

    async def test_its_cost_does_not_depend_on_what_lies_above(self, session, store):
        """The same queries read the same number of rows at 20 and at 600 messages."""
        costs = []
        for count in (20, 600):
            await session.clear_messages()
            await chain(session, count, size=100)
            reader = Counting(store)
            await session.get_recent_history(1, min_recent=10, reader=reader)
            costs.append(reader.seen)
        assert costs[0] == costs[1]
        assert ("recent_rows", 10) in costs[0]

    @pytest.mark.parametrize(
        "query",
        ["head_row", "latest_leaf", "recent_rows", "path_rows", "message_contents", "first_child"],
    )
    async def test_its_queries_never_scan_the_messages(self, store, query):
        sql = statements("sqlite")[query]
        params = dict.fromkeys(re.findall(r":(\w+)", sql), "1")
        plan = [row["detail"] for row in raw(store).execute(f"EXPLAIN QUERY PLAN {sql}", params)]
        touching = [line for line in plan if re.search(r"\b(messages|m|c)\b", line)]
        assert touching
        assert all(line.startswith("SEARCH") for line in touching), plan
