"""An approval is a receipt: for one call, its arguments and its schema (spec/04 §15.3, §23.75)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.approvals.support import (
    ANN,
    BOB,
    BOSS,
    HOUR,
    Careful,
    Desk,
    Newer,
    delete,
    desk,
    rows,
)
from tests.jobs.support import Hours
from thinkwell import Allow, Think, tool
from thinkwell.core.errors import AgentDefinitionError
from thinkwell.features import Without
from thinkwell.journal.approvals import hash_of_input
from thinkwell.testing import call
from thinkwell.tools.fingerprint import schema_fingerprint

HURRIED = call("hurried", {"path": "tmp/a"})


@pytest.fixture(autouse=True)
def nothing_ran():
    Careful.ran.clear()


async def waits_on(each: Desk) -> None:
    await each.agent.run("go")
    assert (await each.part())["state"] == "approval-requested"


class TestAQuestion:
    async def test_binds_tool_schema_arguments_asker_and_approvers(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [call("pay", {"amount": 5})], store=file) as each:
            tab = await each.connect(ANN)
            await tab.ask()
            (asked,) = await each.agent.approvals.pending()
            pay = each.agent._turns.parts.own_tools["pay"]
            assert (asked.tool_name, asked.input) == ("pay", {"amount": 5})
            assert asked.input_hash == hash_of_input({"amount": 5})
            assert asked.schema_hash == schema_fingerprint(pay.input_schema)
            assert (asked.asker, asked.approvers) == (ANN, ("boss",))
            assert asked.asked_at == each.hours.now()
            assert asked.expires_at is None
            assert asked.id == (await each.part())["approval"]["id"]
            (row,) = rows(file, "SELECT * FROM approvals")
            assert (row["approval_id"], row["outcome"]) == (asked.id, None)
            (told,) = each.stage.told("approval:asked")
            assert (told["approval_id"], told["principal"]) == (asked.id, ANN)

    async def test_is_closed_by_the_decision_which_names_it(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [delete()], "gone", store=file) as each:
            await waits_on(each)
            (asked,) = await each.agent.approvals.pending()
            assert await each.agent.approvals.respond(asked.id, approved=True, reason="fine")
            await each.idle()
            assert await each.agent.approvals.pending() == []
            (decision,) = await each.agent.approvals.decisions()
            assert (decision.approval_id, decision.approved) == (asked.id, True)
            assert (decision.input_hash, decision.reason) == (asked.input_hash, "fine")
            (row,) = rows(file, "SELECT outcome, decided_at FROM approvals")
            assert row == {"outcome": "allowed", "decided_at": each.hours.now()}
            (told,) = each.stage.told("chat:decision")
            assert told["approval_id"] == asked.id
            assert each.ran == ["tmp/a"]

    async def test_is_withdrawn_when_the_conversation_goes_on(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [HURRIED], "something else", store=file) as each:
            await waits_on(each)
            await each.agent.run("never mind")
            assert await each.agent.approvals.pending() == []
            assert rows(file, "SELECT outcome FROM approvals") == [{"outcome": "withdrawn"}]
            assert await each.agent.jobs.list() == []

    async def test_a_clear_erases_it_and_its_expiry(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [HURRIED], store=file) as each:
            await waits_on(each)
            await each.agent.clear_messages()
            assert rows(file, "SELECT * FROM approvals") == []
            assert await each.agent.jobs.list() == []

    async def test_of_another_branch_is_not_pending(self):
        async with desk(Careful, [delete()], "another answer") as each:
            await waits_on(each)
            await each.agent.add_messages("before", parent_id=None)
            assert await each.agent.approvals.pending() == []


class TestChanges:
    async def test_other_arguments_are_a_new_question(self):
        async with desk(Careful, [delete()], "gone") as each:
            await waits_on(each)
            (asked,) = await each.agent.approvals.pending()
            answer = (await each.agent.get_messages())[-1]
            changed = [
                {**part, "input": {"path": "etc"}} if "toolCallId" in part else part
                for part in answer["parts"]
            ]
            await each.agent.add_messages([{**answer, "parts": changed}], mode="upsert")
            assert not await each.agent.respond_to_approval("call-1", approved=True)
            assert each.ran == []
            (again,) = await each.agent.approvals.pending()
            assert again.id != asked.id
            assert again.input == {"path": "etc"}
            assert "arguments changed" in (again.note or "")
            assert (await each.part())["approval"]["id"] == again.id
            assert await each.agent.respond_to_approval("call-1", approved=True)
            await each.idle()
            assert each.ran == ["etc"]

    async def test_a_hook_cannot_change_what_was_allowed(self):
        class Sly(Careful, name="careful"):
            async def before_tool_call(self, ctx: Any) -> Any:
                return Allow({"path": "etc"})

        async with desk(Sly, [delete()], "sorry") as each:
            await waits_on(each)
            await each.agent.respond_to_approval("call-1", approved=True)
            await each.idle()
            assert each.ran == []
            assert "arguments changed" in each.results()[0]

    async def test_another_schema_is_told_to_the_model_which_asks_anew(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [delete()], store=file) as each:
            await waits_on(each)

        steps = ([call("delete", {"path": "tmp/a", "trash": True}, id="call-2")], "gone")
        async with desk(Newer, *steps, store=file) as each:
            await each.agent.respond_to_approval("call-1", approved=True)
            await each.idle()
            assert each.ran == []
            assert "has changed" in each.results()[0]
            (asked,) = await each.agent.approvals.pending()
            assert asked.tool_call_id == "call-2"


class TestExpiry:
    async def test_nobody_looks_and_the_conversation_goes_on(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [HURRIED], "too late then", store=file) as each:
            await waits_on(each)
            each.hours.move(HOUR)
            await each.stage.until("chat:turn:finish", 2)
            part = await each.part()
            assert part["state"] == "output-denied"
            wanted = "nobody allowed this call within 1 hour"
            assert wanted in part["approval"]["reason"]
            assert wanted in each.results()[0]
            (decision,) = await each.agent.approvals.decisions()
            assert (decision.expired, decision.approved, decision.principal) == (True, False, None)
            assert rows(file, "SELECT outcome FROM approvals") == [{"outcome": "expired"}]
            assert each.ran == []

    async def test_a_late_yes_is_no_yes(self):
        async with desk(Careful, [HURRIED], "too late then") as each:
            await waits_on(each)
            each.hours.jump(HOUR)  # before the timer rings
            assert not await each.agent.respond_to_approval("call-1", approved=True)
            await each.idle()
            assert (await each.part())["state"] == "output-denied"
            assert each.ran == []

    async def test_a_look_decides(self):
        async with desk(Careful, [HURRIED], "too late then") as each:
            await waits_on(each)
            each.hours.jump(HOUR)
            assert await each.agent.approvals.pending() == []
            await each.idle()
            assert (await each.part())["state"] == "output-denied"

    async def test_an_answer_in_time_leaves_no_timer(self):
        async with desk(Careful, [HURRIED], "gone") as each:
            await waits_on(each)
            each.hours.move(HOUR - 1)
            assert await each.agent.respond_to_approval("call-1", approved=True)
            await each.idle()
            assert each.ran == ["tmp/a"]
            assert await each.agent.jobs.list() == []

    async def test_it_wakes_an_agent_that_sleeps_after_a_restart(self, tmp_path: Path):
        file, hours = tmp_path / "x.db", Hours()
        async with desk(Careful, [HURRIED], store=file, hours=hours) as each:
            await waits_on(each)
        hours.jump(3 * HOUR)
        async with desk(Careful, "too late then", store=file, hours=hours) as each:
            await each.stage.until("chat:turn:finish")
            assert (await each.part())["state"] == "output-denied"

    async def test_a_clock_that_is_set_back_expires_nothing_early(self):
        async with desk(Careful, [HURRIED], "gone") as each:
            await waits_on(each)
            (asked,) = await each.agent.approvals.pending()
            each.hours.jump(-HOUR / 2)
            assert await each.agent.approvals.kit.approvals.expire(asked.id) == 1.5 * HOUR
            assert (await each.part())["state"] == "approval-requested"

    async def test_any_number_of_older_questions_on_left_branches_hide_none(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, store=file):
            pass
        with sqlite3.connect(file) as link:
            link.executemany(
                "INSERT INTO approvals (agent, message_id, tool_call_id, approval_id, tool_name,"
                " input, input_hash, schema_hash, asked_at)"
                " VALUES ('careful/x', ?, 'c', ?, 'delete', '{}', '', '', 1.0)",
                [(f"left-{number}", f"old-{number}") for number in range(1_001)],
            )
        async with desk(Careful, [HURRIED], "too late then", store=file) as each:
            await waits_on(each)
            (asked,) = await each.agent.approvals.pending()
            assert asked.tool_name == "hurried"
            each.hours.move(HOUR)
            await each.stage.until("chat:turn:finish", 2)
            assert (await each.part())["state"] == "output-denied"

    async def test_the_agent_has_a_default_and_a_tool_may_wait_for_ever(self):
        class Impatient(Careful, name="careful"):
            time_limits = {"approval": 60.0}

            @tool(needs_approval=True, approval_expires=float("inf"))
            async def patient(self) -> str:
                """Waits."""
                return "done"

        async with desk(Impatient, [delete(), call("patient", {})]) as each:
            await each.agent.run("go")
            first, second = await each.agent.approvals.pending()
            assert {first.tool_name: first.expires_at, second.tool_name: second.expires_at} == {
                "delete": each.hours.now() + 60.0,
                "patient": None,
            }


class TestWithoutTheFeature:
    """Nothing would end a question that expires: its job belongs to the feature."""

    def test_a_tool_whose_questions_expire_is_refused(self):
        with pytest.raises(AgentDefinitionError, match=r"the tool 'hurried'.*Without"):

            class _Tool(Careful, name="careful"):
                features = [Without("approvals")]

    def test_a_time_limit_for_approvals_is_refused(self):
        with pytest.raises(AgentDefinitionError, match=r'time_limits\["approval"\]'):

            class _Limit(Think, name="limited"):
                features = [Without("approvals")]
                time_limits = {"approval": 60.0}

    def test_what_waits_for_ever_is_fine(self):
        class Patient(Think, name="patient"):
            features = [Without("approvals")]

            @tool(needs_approval=True, approval_expires=float("inf"))
            async def delete(self, path: str) -> str:
                """Delete a file."""
                return path

        assert Patient.agent_class == "patient"


class TestADoubleClick:
    async def test_from_two_tabs_runs_once(self):
        async with desk(Careful, [delete()], "gone") as each:
            one, two = await each.connect(ANN, "one"), await each.connect(ANN, "two")
            await one.ask()
            await one.decide()
            await two.decide()
            await one.decide(approved=False)
            await each.idle()
            assert each.ran == ["tmp/a"]
            assert len(await each.agent.approvals.decisions()) == 1
            assert len(each.model.requests) == 2

    async def test_over_http_and_a_socket_runs_once(self):
        async with desk(Careful, [delete()], "gone") as each:
            tab = await each.connect(ANN)
            await tab.ask()
            kit = each.agent.approvals.kit

            class Http:
                principal, readonly = ANN, False
                request = tab.client

            Http.request.client = None  # type: ignore[attr-defined]
            await tab.decide()
            assert not await kit.answer("call-1", Http, approved=True)
            await each.idle()
            assert each.ran == ["tmp/a"]

    async def test_who_may_not_decide_decides_nothing(self):
        async with desk(Careful, [call("pay", {"amount": 5})], "paid") as each:
            ann, bob = await each.connect(ANN, "ann"), await each.connect(BOB, "bob")
            await ann.ask()
            await ann.decide()
            await bob.decide()
            assert each.ran == []
            await (await each.connect(BOSS, "boss")).decide()
            await each.idle()
            assert each.ran == ["paid 5"]


async def test_twenty_restarts_over_days_use_no_attempt_and_no_budget(tmp_path: Path):
    """spec/04 §23.23: it waits as a row; answering then completes the turn."""
    file, hours = tmp_path / "x.db", Hours()
    async with desk(Careful, [delete()], store=file, hours=hours) as each:
        await waits_on(each)
    for _ in range(20):
        hours.jump(6 * HOUR)
        async with desk(Careful, "gone", store=file, hours=hours) as each:
            assert each.stage.told("chat:recovery:attempt") == []
            assert len(await each.agent.approvals.pending()) == 1
            assert each.model.requests == []
            assert await each.agent.jobs.list() == []
    (turn,) = rows(file, "SELECT attempt, status, stop_reason FROM turns")
    assert turn == {"attempt": 1, "status": "completed", "stop_reason": "approval"}
    async with desk(Careful, "gone", store=file, hours=hours) as each:
        await each.agent.respond_to_approval("call-1", approved=True)
        await each.idle()
        assert each.ran == ["tmp/a"]
