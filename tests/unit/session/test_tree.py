"""The message tree: append, branches, the head, update, delete (spec/03 §2, cases 1-17)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.session.conftest import ids, text
from thinkwell.core.errors import (
    MessageTooLargeError,
    ParentNotFoundError,
    ReservedIdError,
    SessionError,
)
from thinkwell.session.rows import AUTO
from thinkwell.session.session import Session


class TestAppend:
    async def test_an_empty_session_has_no_history(self, session):
        """Case 1."""
        assert await session.get_history() == []
        assert await session.get_path_length() == 0
        assert await session.get_latest_leaf() is None

    async def test_messages_follow_each_other(self, session, put):
        """Case 2."""
        await put("m1", "m2")
        assert ids(await session.get_history()) == ["m1", "m2"]
        assert await session.get_path_length() == 2

    async def test_an_id_that_is_there_changes_nothing(self, session, put):
        """Case 3."""
        await put("m1", "m2")
        result = await session.append_message(text("m1", "Duplicate"), parent=None)
        assert (result.inserted, result.row.id) == (False, "m1")
        assert (await session.get_message("m1"))["parts"][0]["text"] == "m1"
        assert ids(await session.get_history()) == ["m1", "m2"]

    async def test_parent_none_makes_a_new_root(self, session, put):
        """Case 4."""
        await put("m1", "m2")
        await session.append_message(text("m3"), parent=None)
        assert ids(await session.get_history("m3")) == ["m3"]
        assert await session.get_branches("m2") == []
        assert ids(await session.get_branches(None)) == ["m1", "m3"]

    async def test_two_messages_below_one_are_branches(self, session, put):
        """Case 5."""
        await put("m1")
        await put("m2a", "m2b", parent="m1")
        assert ids(await session.get_branches("m1")) == ["m2a", "m2b"]
        assert (await session.get_latest_leaf())["id"] == "m2b"
        assert ids(await session.get_history("m2a")) == ["m1", "m2a"]

    async def test_an_unknown_parent_raises_and_nothing_is_written(self, session, put):
        """Case 7."""
        await put("m1")
        with pytest.raises(ParentNotFoundError, match="nope"):
            await session.append_message(text("m2"), parent="nope")
        assert await session.get_message("m2") is None

    async def test_a_parent_in_another_session_is_unknown(self, session, put, store):
        """Case 8: the same id may live in both."""
        other = Session(store, "assistant/alice", "other")
        await put("m1")
        with pytest.raises(ParentNotFoundError):
            await other.append_message(text("m2"), parent="m1")
        await other.append_message(text("m1", "mine"))
        assert (await session.get_message("m1"))["parts"][0]["text"] == "m1"

    @pytest.mark.parametrize("message_id", ["compaction_1", "stub-x"])
    async def test_reserved_ids_are_refused(self, session, message_id):
        for write in (session.append_message, session.upsert_message):
            with pytest.raises(ReservedIdError, match=message_id):
                await write(text(message_id))

    @pytest.mark.parametrize("broken", [{"role": "user", "parts": []}, {"id": "", "role": "user"}])
    async def test_a_message_without_an_id_is_refused(self, session, broken):
        with pytest.raises(SessionError, match="non-empty string id"):
            await session.append_message(broken)

    async def test_a_message_without_parts_is_refused(self, session):
        with pytest.raises(SessionError, match="list of `parts`"):
            await session.append_message({"id": "m1", "role": "user"})

    async def test_what_is_stored_is_sanitised_and_within_the_row_limit(self, session):
        """spec/03 §11: sanitize, then the size limit, then the store."""
        big = text("m1", "x" * 1_700_000)
        big["parts"].append({"type": "reasoning", "text": " " * 200_000})
        await session.append_message(big)
        stored = await session.get_message("m1")
        assert [part["type"] for part in stored["parts"]] == ["text"]

    async def test_a_message_that_cannot_fit_leaves_no_trace(self, session):
        """Case 69."""
        big = text("m1")
        big["parts"] = [{"type": "file", "mediaType": "x/y", "url": "data:," + "x" * 2_500_000}]
        with pytest.raises(MessageTooLargeError):
            await session.append_message(big)
        assert await session.get_history() == []

    async def test_lone_surrogates_and_nan_are_made_storable(self, session):
        """spec/03 §0."""
        await session.append_message(
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "\ud800", "n": 1e999}]}
        )
        (part,) = (await session.get_message("m1"))["parts"]
        assert part == {"type": "text", "text": "�", "n": None}


class TestTheHead:
    async def test_the_next_append_hangs_under_the_active_leaf_and_becomes_the_head(
        self, session, put
    ):
        """Case 6."""
        await put("m1")
        await put("m2a", "m2b", parent="m1")
        await session.set_active_leaf("m2a")
        await put("x", "y")
        assert ids(await session.get_history()) == ["m1", "m2a", "x", "y"]

    async def test_an_inner_message_may_be_the_active_leaf(self, session, put):
        await put("m1", "m2", "m3")
        await session.set_active_leaf("m2")
        assert ids(await session.get_history()) == ["m1", "m2"]
        assert (await session.get_latest_leaf())["id"] == "m3"

    async def test_a_branch_append_moves_a_pinned_head(self, session, put):
        """Case 16: regenerating follows the new reply."""
        await put("user", "v1")
        await session.set_active_leaf("v1")
        await put("v2", "v3", parent="user")
        assert ids(await session.get_history()) == ["user", "v3"]
        assert ids(await session.get_branches("user")) == ["v1", "v2", "v3"]

    async def test_none_lets_the_latest_leaf_be_the_head_again(self, session, put):
        await put("m1", "m2")
        await session.set_active_leaf("m1")
        await session.set_active_leaf(None)
        assert (await session.get_head()).id == "m2"

    async def test_an_unknown_id_is_refused(self, session):
        with pytest.raises(SessionError, match="'nope'"):
            await session.set_active_leaf("nope")

    async def test_a_deleted_head_gives_way_to_its_childless_parent(self, session, put):
        await put("m1")
        await put("a", "b", parent="m1")
        await put("c", parent="a")
        await session.delete_messages(["c"])
        assert ids(await session.get_history()) == ["m1", "a"]

    async def test_a_deleted_head_gives_way_to_the_latest_leaf_if_its_parent_has_children(
        self, session, put
    ):
        await put("m1")
        await put("a", "b", parent="m1")
        await session.delete_messages(["b"])
        assert ids(await session.get_history()) == ["m1", "a"]

    async def test_deleting_something_else_leaves_a_pinned_head(self, session, put):
        await put("m1", "m2", "m3", "m4")
        await session.set_active_leaf("m3")
        await session.delete_messages(["m2", "m4"])
        assert ids(await session.get_history()) == ["m1", "m3"]

    async def test_an_unknown_leaf_has_no_history(self, session, put):
        await put("m1")
        assert await session.get_history("nope") == []
        assert await session.get_path_length("nope") == 0


class TestUpdate:
    async def test_content_and_role_change_and_the_place_stays(self, session, put):
        await put("m1", "m2", "m3")
        assert await session.update_message({**text("m2", "new"), "role": "assistant"})
        history = await session.get_stored_history()
        assert [m.message["parts"][0]["text"] for m in history] == ["m1", "new", "m3"]
        assert [m.version for m in history] == [1, 2, 1]
        assert [s.role for s in await session.get_history_row_stats()][1] == "assistant"

    async def test_an_unknown_id_is_not_written(self, session):
        assert await session.update_message(text("m1")) is False
        assert await session.get_message("m1") is None

    async def test_sums_of_everything_below_follow(self, session, put):
        await put("m1", "m2")
        await put("a", "b", parent="m2")
        await session.update_message(text("m2", "a much longer text than before"))
        for leaf in ("a", "b"):
            path = await session.history.path(leaf)
            assert path[-1].cum_bytes == sum(row.bytes for row in path)
            assert path[-1].cum_tokens == sum(row.tokens for row in path)

    async def test_upsert_updates_without_moving(self, session, put):
        await put("m1", "m2")
        result = await session.upsert_message(text("m1", "new"), parent="m2")
        assert (result.inserted, result.row.version, result.row.parent_id) == (False, 2, None)

    async def test_upsert_appends_what_is_unknown(self, session, put):
        await put("m1")
        result = await session.upsert_message(text("m2"))
        assert (result.inserted, result.row.parent_id) == (True, "m1")


class TestDelete:
    async def test_children_move_to_the_nearest_message_that_stays(self, session, put):
        """Case 9."""
        await put("m0", "m1", "m2")
        assert await session.delete_messages(["m1"]) == 1
        assert ids(await session.get_history()) == ["m0", "m2"]
        await session.delete_messages(["m2"])
        assert (await session.get_latest_leaf())["id"] == "m0"

    async def test_a_deleted_root_makes_roots_of_its_children(self, session, put):
        await put("m0", "m1", "m2")
        await session.delete_messages(["m0"])
        assert [row.parent_id for row in await session.history.path()] == [None, "m1"]

    async def test_separate_groups_can_go_at_once(self, session, put):
        await put("a", "b", "c", "d", "e", "f")
        assert await session.delete_messages(["b", "c", "e", "ghost"]) == 3
        rows = await session.history.path()
        assert [row.id for row in rows] == ["a", "d", "f"]
        assert [row.depth for row in rows] == [1, 2, 3]
        assert rows[-1].cum_bytes == sum(row.bytes for row in rows)

    async def test_unknown_ids_delete_nothing(self, session, put):
        await put("m1")
        assert await session.delete_messages(["x"]) == 0
        assert await session.delete_branch("x") == 0

    async def test_a_branch_goes_with_everything_below_it(self, session, put):
        await put("m1")
        await put("a", parent="m1")
        await put("a1", "a2", parent="a")
        await put("b", parent="m1")
        assert await session.delete_branch("a") == 3
        assert ids(await session.get_branches("m1")) == ["b"]

    async def test_deleting_the_branch_of_the_head_moves_the_head(self, session, put):
        await put("m1", "m2", "m3")
        await session.delete_branch("m2")
        assert ids(await session.get_history()) == ["m1"]

    async def test_clear_empties_this_session_only(self, session, put, store):
        """Case 17."""
        other = Session(store, "assistant/alice", "other")
        await other.append_message(text("m1"))
        await put("m1", "m2")
        await session.set_active_leaf("m1")
        assert await session.clear_messages() == 2
        assert await session.get_history() == []
        assert ids(await other.get_history()) == ["m1"]

    async def test_an_id_can_be_used_again_with_other_content(self, session, put):
        await put("m1")
        await session.get_history()
        await session.delete_messages(["m1"])
        await session.append_message(text("m1", "again"))
        assert (await session.get_message("m1"))["parts"][0]["text"] == "again"


class TestAddMessages:
    async def test_a_list_becomes_a_chain(self, session):
        """Case 15."""
        added = await session.add_messages([text("a"), text("b"), text("c")])
        assert [result.row.parent_id for result in added] == [None, "a", "b"]

    async def test_known_ids_are_kept_and_chained_under(self, session):
        await session.add_messages([text("a"), text("b")])
        await session.add_messages([text("a", "new"), text("x")])
        assert (await session.get_message("a"))["parts"][0]["text"] == "a"
        assert ids(await session.get_branches("a")) == ["b", "x"]

    async def test_upsert_replaces_known_ids_in_place(self, session):
        await session.add_messages([text("a"), text("b")])
        await session.add_messages([text("a", "new"), text("b", "new")], mode="upsert")
        history = await session.get_history()
        assert [message["parts"][0]["text"] for message in history] == ["new", "new"]

    async def test_a_function_gets_the_current_history(self, session, put):
        await put("a")
        await session.add_messages(lambda current: [text(f"after-{current[-1]['id']}")])
        assert ids(await session.get_history()) == ["a", "after-a"]

    async def test_a_function_is_called_again_if_something_was_written_meanwhile(self, store):
        """Users' code runs outside the transaction (DESIGN §8.9), and still decides on what is."""
        seen: list[list[str]] = []
        meanwhile = [text("b")]

        async def write(work: Any) -> Any:
            while meanwhile:
                async with store.transaction() as tx:
                    await session.append(tx, meanwhile.pop())
            async with store.transaction() as tx:
                return await work(tx)

        def follow(current: list[Any]) -> list[Any]:
            seen.append(ids(current))
            return [text(f"after-{len(current)}")]

        session = Session(store, "agent/x", write=write)
        await session.add_messages(follow)
        assert seen == [[], ["b"]]
        assert ids(await session.get_history()) == ["b", "after-1"]

    async def test_a_function_runs_outside_any_transaction(self, session, store):
        busy: list[bool] = []

        def look(current: list[Any]) -> list[Any]:
            busy.append(store._link.lock.locked())
            return [text("a")]

        await session.add_messages(look)
        assert busy == [False]

    @pytest.mark.parametrize(
        ("messages", "parent", "error"),
        [
            ([text("a"), text("b")], "nope", ParentNotFoundError),
            ([text("a"), text("stub-b")], AUTO, ReservedIdError),
            ([text("a"), {"id": "b"}], AUTO, SessionError),
        ],
    )
    async def test_whatever_is_wrong_is_found_before_the_first_write(
        self, session, store, messages, parent, error
    ):
        """The transaction stays usable: a group commit may hold other work."""
        async with store.transaction() as tx:
            with pytest.raises(error):
                await session.add(tx, messages, parent)
        assert await session.get_message("a") is None

    async def test_an_empty_list_writes_nothing(self, session):
        assert await session.add_messages([], parent="nope") == []


class TestTransactions:
    async def test_writes_go_through_the_given_function(self, store):
        calls: list[str] = []

        async def write(work):
            calls.append("begin")
            async with store.transaction() as tx:
                result = await work(tx)
            calls.append("committed")
            return result

        await Session(store, "a", write=write).append_message(text("m1"))
        assert calls == ["begin", "committed"]

    async def test_a_transaction_reads_what_it_wrote(self, session, store):
        async with store.transaction() as tx:
            await session.append(tx, text("m1"))
            assert ids(await session.get_history(reader=tx)) == ["m1"]

    async def test_what_a_rolled_back_transaction_read_is_forgotten(self, session, store):
        with pytest.raises(ValueError, match="no"):
            await append_read_and_fail(session, store)
        await session.append_message(text("m1", "second"))
        assert (await session.get_message("m1"))["parts"][0]["text"] == "second"

    async def test_agents_do_not_see_each_other(self, session, put, store):
        await put("m1")
        assert await Session(store, "assistant/bob").get_history() == []


async def append_read_and_fail(session, store):
    async with store.transaction() as tx:
        await session.append(tx, text("m1", "first"))
        await session.get_history(reader=tx)
        raise ValueError("no")
