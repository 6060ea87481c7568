"""Rules that always allow: for one person, for arguments of one shape, while the tool stays."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tests.approvals.support import ANN, BOB, BOSS, HOUR, Careful, Newer, delete, desk, rows
from thinkwell import Principal, Think, tool
from thinkwell.core.errors import ApprovalError
from thinkwell.journal.approval_rules import MOST_RULES
from thinkwell.testing import call
from thinkwell.turn.ask.answers import approval_answer
from thinkwell.turn.ask.chat_request import Asker
from thinkwell.turn.ask.client_answers import answer_as_client

TMP = {"path": {"prefix": "tmp/"}}
PAY = call("pay", {"amount": 5})


@pytest.fixture(autouse=True)
def nothing_ran():
    Careful.ran.clear()


class TestARule:
    async def test_runs_the_call_without_asking_and_is_named_by_the_decision(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(Careful, [delete()], "gone", store=file) as each:
            rule = await each.agent.approvals.allow("delete", TMP)
            result = await each.agent.run("go")
            assert (each.ran, result.text) == (["tmp/a"], "gone")
            (row,) = rows(file, "SELECT rule, approved, input_hash, schema_hash FROM decisions")
            assert (row["rule"], row["approved"]) == (rule.id, 1)
            assert row["schema_hash"] == rule.schema_hash
            (told,) = each.stage.told("chat:decision")
            assert told["rule"] == rule.id
            assert rows(file, "SELECT * FROM approvals") == []

    async def test_does_not_cover_other_arguments(self):
        async with desk(Careful, [delete("etc/passwd")]) as each:
            await each.agent.approvals.allow("delete", TMP)
            await each.agent.run("go")
            assert (await each.part())["state"] == "approval-requested"

    async def test_is_for_one_person(self):
        async with desk(Careful, [delete()], [delete()], "gone") as each:
            await each.agent.approvals.allow("delete", TMP, principal="bob")
            ann, bob = await each.connect(ANN, "ann"), await each.connect(BOB, "bob")
            await ann.ask(request="q1")
            assert each.ran == []
            await bob.ask(request="q2")
            await each.idle()
            assert each.ran == ["tmp/a"]

    async def test_is_listed_and_revoked(self):
        async with desk(Careful, [delete()]) as each:
            rule = await each.agent.approvals.allow("delete", TMP)
            (listed,) = await each.agent.approvals.rules()
            assert (listed.id, listed.holds) == (rule.id, True)
            assert await each.agent.approvals.revoke(rule.id)
            assert not await each.agent.approvals.revoke(rule.id)
            assert await each.agent.approvals.rules() == []
            await each.agent.run("go")
            assert each.ran == []
            assert len(each.stage.told("approval:rule:made")) == 1
            assert len(each.stage.told("approval:rule:revoked")) == 1

    async def test_said_twice_is_one(self):
        async with desk() as each:
            one = await each.agent.approvals.allow("delete", TMP)
            assert await each.agent.approvals.allow("delete", TMP) == one
            assert len(await each.agent.approvals.rules()) == 1

    async def test_asks_again_after_a_change_of_the_schema_and_says_why(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with desk(store=file) as each:
            await each.agent.approvals.allow("delete", TMP)
        async with desk(Newer, [delete()], store=file) as each:
            (listed,) = await each.agent.approvals.rules()
            assert not listed.holds
            await each.agent.run("go")
            assert each.ran == []
            (asked,) = await each.agent.approvals.pending()
            assert "has changed since it was made" in (asked.note or "")
            (told,) = each.stage.told("approval:asked")
            assert told["note"] == asked.note

    async def test_outlives_a_clear(self):
        async with desk(Careful, "hi") as each:
            await each.agent.approvals.allow("delete", TMP)
            await each.agent.clear_messages()
            assert len(await each.agent.approvals.rules()) == 1

    @pytest.mark.parametrize(
        ("tool", "arguments", "says"),
        [
            ("delte", TMP, "Did you mean 'delete'"),
            ("delete", {}, "Name each argument"),
            ("delete", {"path": {"regex": ".*"}}, "Write one of"),
            ("delete", {"path": ["a"]}, '{"equals": ...}'),
        ],
    )
    async def test_that_cannot_be_made_says_what_to_write(
        self, tool: str, arguments: Any, says: str
    ):
        async with desk() as each:
            with pytest.raises(ApprovalError) as caught:
                await each.agent.approvals.allow(tool, arguments)
            assert says in str(caught.value)


class TestAlwaysAllow:
    async def test_allows_this_call_and_the_very_same_from_now_on(self):
        steps = ([delete()], "gone", [delete()], "again", [delete("tmp/b")])
        async with desk(Careful, *steps) as each:
            tab = await each.connect(ANN)
            await tab.ask(request="q1")
            (asked,) = await tab.call("getApprovals")
            rule = await tab.call("allowAlways", asked["id"])
            assert rule["principal"] == "ann"
            await each.idle()
            await tab.ask(request="q2")
            assert each.ran == ["tmp/a", "tmp/a"]
            await tab.ask(request="q3")
            assert each.ran == ["tmp/a", "tmp/a"]

    async def test_the_boss_makes_it_for_whoever_asked(self):
        async with desk(Careful, [PAY], "paid", [PAY], "paid") as each:
            ann, boss = await each.connect(ANN, "ann"), await each.connect(BOSS, "boss")
            await ann.ask(request="q1")
            rule = await boss.call("allowAlways", "call-1", {"amount": 5})
            assert (rule["principal"], rule["madeBy"]["id"]) == ("ann", "boss")
            await each.idle()
            await ann.ask(request="q2")
            assert each.ran == ["paid 5", "paid 5"]
            decisions = await each.agent.approvals.decisions()
            assert [d.principal for d in decisions] == [BOSS, BOSS]
            assert [d.rule for d in decisions] == [rule["id"], None]

    async def test_a_click_on_what_is_gone_makes_no_rule(self):
        async with desk(Careful, [delete()], "gone") as each:
            tab = await each.connect(ANN)
            await tab.ask()
            await tab.decide()
            await each.idle()
            assert await tab.call("allowAlways", "call-1") is None
            assert await each.agent.approvals.rules() == []


class TestHostileClients:
    async def test_nobody_makes_a_rule_for_a_tool_that_does_not_name_them(self):
        async with desk(Careful, [PAY]) as each:
            ann = await each.connect(ANN)
            await ann.ask()
            with pytest.raises(RuntimeError, match="Not allowed"):
                await ann.call("addApprovalRule", "pay", {"*": {"any": True}})
            with pytest.raises(RuntimeError, match="Not allowed"):
                await ann.call("allowAlways", "call-1")
            assert await each.agent.approvals.rules() == []
            assert each.ran == []

    async def test_a_rule_is_always_for_oneself(self):
        async with desk() as each:
            rule = await (await each.connect(ANN)).call("addApprovalRule", "delete", TMP)
            assert rule["principal"] == "ann"
            with pytest.raises(RuntimeError):
                await (await each.connect(ANN)).call("addApprovalRule", "delete", TMP, "bob")

    async def test_claims_stay_on_the_server(self):
        """They are between the app and `auth`; a page learns who made a rule, and no more."""
        clerk = Principal(id="ann", claims={"token": "secret"})
        async with desk(Careful, [delete()]) as each:
            ann = await each.connect(clerk)
            made = await ann.call("addApprovalRule", "delete", TMP | {"force": False})
            await ann.ask()
            always = await ann.call("allowAlways", "call-1")
            seen = [made, always, *await ann.call("getApprovalRules")]
            assert [rule["madeBy"]["id"] for rule in seen] == ["ann"] * 4
            assert "secret" not in str(seen)

    async def test_what_clients_get_wrong_fills_no_log(self, caplog: pytest.LogCaptureFixture):
        caplog.set_level("INFO", "thinkwell")
        async with desk() as each:
            ann = await each.connect(ANN)
            for wrong in (
                ("x" * 100_000, TMP),
                ("delete", {}),
                ("delete", {"path": {"like": "a"}}),
            ):
                with pytest.raises(RuntimeError):
                    await ann.call("addApprovalRule", *wrong)
        refused = [record for record in caplog.records if "refused" in record.getMessage()]
        assert [record.levelname for record in refused] == ["INFO"] * 3
        assert not any(record.exc_info for record in caplog.records)
        assert max(len(record.getMessage()) for record in caplog.records) < 1_000

    async def test_nobody_uses_anothers_question_to_make_one(self):
        async with desk(Careful, [delete()]) as each:
            ann, bob = await each.connect(ANN, "ann"), await each.connect(BOB, "bob")
            await ann.ask()
            with pytest.raises(RuntimeError, match="Not allowed"):
                await bob.call("allowAlways", "call-1", {"*": {"any": True}})
            assert await each.agent.approvals.rules() == []

    async def test_others_see_and_revoke_no_rule_of_mine(self):
        async with desk() as each:
            ann, bob = await each.connect(ANN, "ann"), await each.connect(BOB, "bob")
            nobody = await each.connect(None, "nobody")
            rule = await ann.call("addApprovalRule", "delete", TMP)
            assert await bob.call("getApprovalRules") == []
            assert await nobody.call("getApprovalRules") == []
            with pytest.raises(RuntimeError, match="Not allowed"):
                await bob.call("revokeApprovalRule", rule["id"])
            assert len(await ann.call("getApprovalRules")) == 1
            assert await ann.call("revokeApprovalRule", rule["id"])

    async def test_who_may_only_look_makes_none(self):
        class Shown(Careful, name="careful"):
            def should_connection_be_readonly(self, connection: Any, request: Any) -> bool:
                return True

        async with desk(Shown) as each:
            ann = await each.connect(ANN)
            assert await ann.call("getApprovals") == []
            with pytest.raises(RuntimeError, match="readonly"):
                await ann.call("addApprovalRule", "delete", TMP)

    async def test_a_rule_does_what_its_maker_could_allow_at_the_time_of_the_call(self):
        """`authorize` lets the clerk approve small amounts: a broad rule changes nothing."""

        class Bank(Careful, name="careful"):
            def authorize(self, action: Any, principal: Principal | None, subject: Any) -> bool:
                if action == "approve" and subject.input is not None:
                    return principal == ANN and subject.input["amount"] < 100
                return super().authorize(action, principal, subject)

        large = call("transfer", {"amount": 5000})

        class Teller(Bank, name="careful"):
            @tool(needs_approval=True)
            async def transfer(self, amount: int) -> str:
                """Move money."""
                self.ran.append(str(amount))
                return "moved"

        steps = ([call("transfer", {"amount": 5})], "moved", [large])
        async with desk(Teller, *steps) as each:
            ann = await each.connect(ANN)
            await ann.call("addApprovalRule", "transfer", {"amount": {"any": True}})
            await ann.ask(request="q1")
            assert each.ran == ["5"]
            await ann.ask(request="q2")
            assert each.ran == ["5"]
            (asked,) = await each.agent.approvals.pending()
            assert "may not approve this one" in (asked.note or "")

    async def test_a_role_that_was_lost_since_allows_nothing(self):
        """The claims stored with a rule are as old as it is, so `authorize` does not get them."""
        roles = {"ann": {"clerk"}}

        class Trusting(Careful, name="careful"):
            def authorize(self, action: Any, principal: Principal | None, subject: Any) -> bool:
                if action != "approve" or principal is None:
                    return super().authorize(action, principal, subject)
                return "clerk" in principal.claims.get("roles", ())

        class LooksUp(Careful, name="careful"):
            def authorize(self, action: Any, principal: Principal | None, subject: Any) -> bool:
                if action != "approve" or principal is None:
                    return super().authorize(action, principal, subject)
                return "clerk" in roles[principal.id]

        clerk = Principal(id="ann", claims={"roles": ["clerk"]})
        async with desk(Trusting, [delete()]) as each:
            tab = await each.connect(clerk)
            await tab.call("addApprovalRule", "delete", TMP)
            await tab.ask()
            assert each.ran == []
            (asked,) = await each.agent.approvals.pending()
            assert "may not approve this one" in (asked.note or "")
        async with desk(LooksUp, [delete()], "gone", [delete()]) as each:
            tab = await each.connect(clerk)
            await tab.call("addApprovalRule", "delete", TMP)
            await tab.ask(request="q1")
            assert each.ran == ["tmp/a"]
            roles["ann"].clear()
            await tab.ask(request="q2")
            assert each.ran == ["tmp/a"]

    async def test_a_rule_ends_with_the_sign_in_of_its_maker_until_it_is_made_again(self):
        steps = ([delete()], "gone", [delete()], "never mind", [delete()], "gone")
        async with desk(Careful, *steps) as each:
            until = each.hours.now() + HOUR
            tab = await each.connect(Principal(id="ann", expires_at=until))
            first = await tab.call("addApprovalRule", "delete", TMP)
            await tab.ask(request="q1")
            assert each.ran == ["tmp/a"]
            each.hours.move(HOUR)
            later = await each.connect(Principal(id="ann", expires_at=until + HOUR), "later")
            await later.ask(request="q2")
            assert each.ran == ["tmp/a"]
            await later.decide(approved=False, call_id="call-2")
            await each.idle()
            again = await later.call("addApprovalRule", "delete", TMP)
            assert again["id"] == first["id"]
            await later.ask(request="q3")
            assert each.ran == ["tmp/a", "tmp/a"]

    async def test_a_rule_of_somebody_who_may_no_longer_make_it_does_not_swallow_a_good_one(self):
        bosses = {"boss"}

        def is_boss(principal: Principal | None, _: Any) -> bool:
            return principal is not None and principal.id in bosses

        class Firm(Careful, name="careful"):
            @tool(needs_approval=True, approvers=is_boss)
            async def spend(self, amount: int) -> str:
                """Spend money."""
                self.ran.append(f"spent {amount}")
                return "spent"

        spend = call("spend", {"amount": 5})
        async with desk(Firm, [spend], "spent", [spend], "spent") as each:
            ann, boss = await each.connect(ANN, "ann"), await each.connect(BOSS, "boss")
            await ann.ask(request="q1")
            dead = await boss.call("allowAlways", "call-1")
            await each.idle()
            bosses.clear()
            good = await each.agent.approvals.allow("spend", {"amount": 5}, principal="ann")
            assert good.id != dead["id"]
            await ann.ask(request="q2")
            assert each.ran == ["spent 5", "spent 5"]

    async def test_claims_of_other_people_do_not_reach_clients(self):
        ann = Principal(id="ann", claims={"email": "ann@secret.example"})
        boss = Principal(id="boss", claims={"salary": 4711}, expires_at=9e9)
        async with desk(Careful, [PAY], "paid") as each:
            hers, his = await each.connect(ann, "ann"), await each.connect(boss, "boss")
            await hers.ask()
            (asked,) = await his.call("getApprovals")
            assert asked["asker"]["id"] == "ann"
            assert "secret" not in str(asked)
            made = await his.call("allowAlways", "call-1")
            (rule,) = await hers.call("getApprovalRules")
            assert (rule["id"], rule["madeBy"]["id"]) == (made["id"], "boss")
            assert "4711" not in str(rule)
            assert "9000000000" not in str(rule)
            (kept,) = await each.agent.approvals.rules()
            assert kept.made_by == boss


class TestWhoMayAnswer:
    async def test_always_allow_goes_by_whom_the_tool_named_when_it_asked(self, tmp_path: Path):
        """A deploy names somebody else: neither of the two ways to say yes may differ about it."""

        file = tmp_path / "x.db"
        async with desk(Careful, [PAY], store=file) as each:
            await (await each.connect(ANN)).ask()

        class Deployed(Think, name="careful"):
            ran: ClassVar[list[str]] = Careful.ran

            @tool(needs_approval=True, approvers={"bob"})
            async def pay(self, amount: int) -> str:
                """Pay somebody."""
                self.ran.append(f"paid {amount}")
                return f"paid {amount}"

        async with desk(Deployed, "paid", store=file) as each:
            bob, boss = await each.connect(BOB, "bob"), await each.connect(BOSS, "boss")
            with pytest.raises(RuntimeError, match="Not allowed"):
                await bob.call("allowAlways", "call-1")
            assert await each.agent.approvals.rules() == []
            assert await boss.call("allowAlways", "call-1")
            await each.idle()
            assert each.ran == ["paid 5"]

    async def test_an_answer_that_names_its_message_means_no_newer_call_of_that_id(self):
        """Providers use ids again: a yes to the older call must not run the newer one."""
        again = call("delete", {"path": "etc/passwd"}, id="same")
        steps = ([call("delete", {"path": "tmp/a"}, id="same")], [again], "gone")
        async with desk(Careful, *steps) as each:
            tab = await each.connect(ANN)
            await tab.ask(request="q1")
            (older,) = await each.agent.approvals.pending()
            await tab.ask(request="q2")
            (newer,) = await each.agent.approvals.pending()
            assert older.message_id != newer.message_id
            answer = approval_answer("same", approved=True)
            meant = msgspec.structs.replace(answer, message_id=older.message_id)
            asker = Asker(trigger="ws-chat", principal=ANN)
            assert not await answer_as_client(each.agent._turns, meant, asker)
            assert [asked.id for asked in await each.agent.approvals.pending()] == [newer.id]
            assert each.ran == []


class TestManyRules:
    async def test_there_is_a_most_for_one_person_and_tool(self):
        async with desk() as each:
            ann, bob = await each.connect(ANN, "ann"), await each.connect(BOB, "bob")
            for number in range(MOST_RULES):
                await each.agent.approvals.allow("delete", {"path": f"{number}"}, principal="ann")
            with pytest.raises(RuntimeError, match="200 rules about 'delete'"):
                await ann.call("addApprovalRule", "delete", TMP)
            again = await each.agent.approvals.allow("delete", {"path": "7"}, principal="ann")
            assert again.arguments == {"path": {"equals": "7"}}
            assert await ann.call("addApprovalRule", "hurried", TMP)
            assert await bob.call("addApprovalRule", "delete", TMP)

    async def test_all_are_listed_and_each_tool_is_looked_for_once(self, tmp_path: Path):
        asked: list[str] = []

        class Given(Careful, name="careful"):
            def get_tools(self) -> dict[str, Any]:
                asked.append("get_tools")
                return {}

        file = tmp_path / "x.db"
        async with desk(store=file) as each:
            await each.agent.approvals.allow("delete", TMP, principal="ann")
        with sqlite3.connect(file) as link:
            link.executemany(
                "INSERT INTO approval_rules (agent, id, tool_name, principal, arguments,"
                " schema_hash, by_client, made_at)"
                " VALUES ('careful/x', ?, 'gone', ?, '{}', '', 0, 1)",
                [(f"r{number}", f"somebody-{number}") for number in range(1_200)],
            )
        async with desk(Given, store=file) as each:
            last = await each.agent.approvals.allow("delete", TMP, principal="bob")
            bob = await each.connect(BOB)
            asked.clear()
            (listed,) = await bob.call("getApprovalRules")
            assert (listed["id"], listed["holds"]) == (last.id, True)
            assert asked == []
            found = await each.agent.approvals.rules()
            assert (len(found), found[-1].id) == (1_202, last.id)
            assert asked == ["get_tools"]
