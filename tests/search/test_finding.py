"""What a search finds, and in which order (spec/03 §9, §20.57-61)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.search.support import Talker, rows, said, talking, texts
from thinkwell import Think
from thinkwell.errors import SearchUnsupportedError
from thinkwell.testing import ScriptedModel


async def test_all_words_in_any_order_but_a_phrase_in_its_own():
    """spec/03 §20.57"""
    async with talking() as agent:
        await agent.fill(["deployment is on Friday"])
        assert texts(await agent.search.find("Friday deployment")) == ["deployment is on Friday"]
        assert texts(await agent.search.find("Friday deployment", mode="all")) == [
            "deployment is on Friday"
        ]
        assert await agent.search.find("Friday deployment", mode="phrase") == []
        assert len(await agent.search.find("is on Friday", mode="phrase")) == 1


async def test_stems_are_compared():
    async with talking() as agent:
        await agent.fill(["We were deploying the invoices service"])
        assert len(await agent.search.find("deployed invoice", mode="all")) == 1


async def test_texts_without_spaces_and_what_is_glued_to_them():
    """spec/03 §20.59"""
    async with talking() as agent:
        await agent.fill(["重跑gen-itgc后悬空引用", "nothing of that"])
        for query in ("itgc", "悬空引用", "悬空"):
            assert texts(await agent.search.find(query)) == ["重跑gen-itgc后悬空引用"], query
        assert await agent.search.find("引悬") == []


async def test_a_piece_of_an_identifier():
    async with talking() as agent:
        await agent.fill(["The error was E_CONN_4711 in src/net/poolManager.py", "All fine now"])
        for query in ("CONN_47", "poolMan", "net/pool"):
            assert len(await agent.search.find(query)) == 1, query


async def test_a_message_of_a_megabyte_is_found_by_its_first_and_its_last_words():
    """spec/03 §20.60"""
    words = [f"word{n}" for n in range(60_000)]
    async with talking() as agent:
        await agent.fill([" ".join(words)])
        for query in ("word7", "word59999"):
            (hit,) = await agent.search.find(query)
            assert query in hit.text
            assert query in hit.snippet
            assert len(hit.text) <= 4000


async def test_the_question_leads_to_its_answer():
    async with talking() as agent:
        await agent.fill(["Where does Caroline keep her violin?", "In the blue cupboard."])
        found = texts(await agent.search.find("Caroline violin cupboard"))
        assert found[0] == "In the blue cupboard."  # it alone has all three, with what led to it
        assert await agent.search.find("Caroline violin cupboard", mode="all") == []


async def test_where_not_all_words_are_the_rarest_decide():
    async with talking() as agent:
        await agent.fill([f"we talked about the weather, day {n}" for n in range(30)])
        await agent.fill(["the submarine weather"])
        found = await agent.search.find("what was that weather submarine thing from Tuesday")
        assert found[0].text == "the submarine weather"


async def test_filters_by_role_time_and_tool():
    async with talking() as agent:
        await agent.fill(["apples from the user", "apples from the assistant"])
        called: Any = said("apples by tool", "assistant")
        called["parts"].append(
            {
                "type": "tool-weigh",
                "toolCallId": "c",
                "state": "output-available",
                "input": {},
                "output": "pears",
            }
        )
        await agent.session.append_message(called)
        find = agent.search.find
        assert texts(await find("apples", roles="user")) == ["apples from the user"]
        assert len(await find("apples", roles=["user", "assistant"])) == 3
        assert texts(await find("apples", tool="weigh")) == ["apples by tool"]
        assert await find("apples", tool="measure") == []
        assert await find("pears") == []  # what tools return is not what was said
        assert await find("apples", after=datetime(2999, 1, 1, tzinfo=UTC)) == []
        assert len(await find("apples", before=datetime(2999, 1, 1, tzinfo=UTC))) == 3
        assert len(await find("pple", mode="substring", roles="user")) == 1


async def test_other_branches_are_found_too():
    async with talking() as agent:
        first, _ = await agent.fill(["plan", "the walrus answer"])
        await agent.fill(["x"], first)
        assert texts(await agent.search.find("walrus")) == ["the walrus answer"]


async def test_each_message_is_one_hit_with_its_place():
    async with talking() as agent:
        (message_id,) = await agent.fill(["otter " * 2000])
        (hit,) = await agent.search.find("otter")
        assert (hit.id, hit.role, hit.agent, hit.session_id) == (
            message_id,
            "user",
            "talker/default",
            "",
        )
        assert hit.score > 0


@pytest.mark.parametrize("query", ["", "   ", "\0", "...", '"""', "\ud800"])
async def test_a_query_without_words_finds_nothing(query: str):
    async with talking() as agent:
        await agent.fill(["something"])
        assert await agent.search.find(query) == []


async def test_the_session_searches_itself(tmp_path: Path):
    """`session.search`, as the reference names it: every word by default."""
    async with talking(tmp_path / "a.db") as agent:
        await agent.fill(["deployment is on Friday", "fine"])
        assert len(await agent.session.search("Friday deployment")) == 1
        assert await agent.session.search("Friday monday") == []
        assert await agent.session.search("Friday deployment", mode="phrase") == []
        assert len(await agent.session.search("fine", limit=1, roles="assistant")) == 1


async def test_without_the_feature_a_search_says_what_to_write():
    class Plain(Think):
        model = ScriptedModel([])

    from thinkwell import App

    async with App(agents=[Plain], store="sqlite://:memory:") as app:
        with pytest.raises(SearchUnsupportedError, match=r"features = \[Search\(\)\]"):
            await app.agent(Plain).session.search("x")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limit": 0}, "limit=0"),
        ({"mode": "fuzzy"}, "'best', 'all', 'any', 'phrase', 'substring'"),
        ({"roles": "human"}, "user, assistant, system"),
        ({"after": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001 - the mistake
        ({"before": "yesterday"}, "seconds since the epoch"),
    ],
)
async def test_what_cannot_be_meant_is_refused(wrong: Any, said: str):
    async with talking() as agent:
        with pytest.raises(ValueError, match=said):
            await agent.search.find("x", **wrong)


async def test_the_agents_own_code_calls_its_namespace(tmp_path: Path):
    class Caller(Talker):
        async def look(self, query: str) -> list[str]:
            return texts(await self.search(query))

    from thinkwell import App

    async with App(agents=[Caller], store=f"sqlite:///{tmp_path / 'a.db'}") as app:
        agent = app.agent(Caller)
        await agent.fill(["a heron on the roof"])
        assert await agent.look("herons") == ["a heron on the roof"]
    assert rows(tmp_path / "a.db", "SELECT class FROM search_marks") == [("caller",)]
