"""Lists that clients post against what is stored (spec/01 §7.2-7.5, spec/03 §11)."""

import copy

import pytest

from tests.unit.messages.helpers import assistant, call, settled_call, text, user
from thinkwell.messages.reconcile import reconcile


class TestOutcomes:
    """7.3: a call the server has settled is settled in the client's copy too."""

    @pytest.mark.parametrize(
        "state", ["input-available", "approval-requested", "approval-responded"]
    )
    @pytest.mark.parametrize(
        ("known", "field"),
        [
            (settled_call("found"), "output"),
            (call("output-error", errorText="broke"), "errorText"),
            (call("output-denied", approval={"id": "ap", "approved": False}), "approval"),
        ],
    )
    def test_state_and_its_one_field_come_from_the_server(self, state, known, field):
        stored = assistant(known | {"title": "server's"})
        [message] = reconcile([assistant(call(state, title="client's"))], [stored])
        assert message["parts"] == [known | {"title": "client's", field: known[field]}]

    @pytest.mark.parametrize(
        "part", [call("output-available", output="mine"), call("input-streaming")]
    )
    def test_other_states_stay_the_clients(self, part):
        incoming = [assistant(part)]
        assert reconcile(incoming, [assistant(settled_call("server's"))]) is incoming

    def test_a_call_the_server_has_not_settled_changes_nothing(self):
        incoming = [assistant(call("input-available"))]
        assert reconcile(incoming, [assistant(call("approval-requested"))]) is incoming

    def test_an_id_used_again_in_a_later_turn_is_another_call(self):
        """★ of 7.5: only the row the message resolved to is asked."""
        old = assistant(settled_call("old answer"), id="old")
        new = assistant(call("input-available", input={"q": 2}), id="new")
        incoming = [new]
        assert reconcile(incoming, [old, new]) is incoming


class TestIds:
    def test_7_4_the_same_words_under_another_id_are_the_stored_message(self):
        incoming = assistant(text("hi", state="done"), id="client")
        stored = assistant(text("hi", state="done"), id="server")
        assert reconcile([incoming], [stored]) == [stored]

    def test_7_4_each_stored_message_is_claimed_once(self):
        copies = [assistant(text("hi"), id=name) for name in ("x", "y", "z")]
        stored = [assistant(text("hi"), id=name) for name in ("s1", "s2")]
        assert [m["id"] for m in reconcile(copies, stored)] == ["s1", "s2", "z"]

    def test_7_4_exact_ids_claim_first(self):
        incoming = [assistant(text("hi"), id="client"), assistant(text("hi"), id="s1")]
        assert reconcile(incoming, [assistant(text("hi"), id="s1")]) is incoming

    def test_7_4_other_words_stay_new(self):
        incoming = [assistant(text("hello"), id="client")]
        assert reconcile(incoming, [assistant(text("hi"), id="server")]) is incoming

    def test_7_4_what_storage_removes_does_not_count(self):
        ephemeral = {"openai": {"itemId": "x"}}
        incoming = assistant(text("hi", providerMetadata=ephemeral), id="client")
        assert reconcile([incoming], [assistant(text("hi"), id="server")])[0]["id"] == "server"

    def test_7_4_the_stream_id_a_client_keeps_on_reasoning_does_not_count(self):
        thought = {"type": "reasoning", "text": "hm", "state": "done"}
        incoming = assistant(thought | {"id": "r1"}, id="client")
        assert reconcile([incoming], [assistant(thought, id="server")])[0]["id"] == "server"

    def test_7_5_a_call_belongs_to_the_row_that_owns_it(self):
        incoming = assistant(text("more"), call("input-available"), id="client")
        [message] = reconcile([incoming], [assistant(settled_call("found"), id="server")])
        assert (message["id"], message["parts"][1]["output"]) == ("server", "found")

    @pytest.mark.parametrize("other", [{"input": {"q": 2}}, {"type": "tool-x", "toolName": "x"}])
    def test_7_5_the_same_call_id_is_not_enough(self, other):
        incoming = [assistant(call("input-available") | other, id="client")]
        assert reconcile(incoming, [assistant(settled_call(), id="server")]) is incoming

    def test_7_5_an_input_still_streaming_is_not_compared(self):
        incoming = assistant(call("input-streaming", input={"q": 1, "r": "ha"}), id="client")
        stored = assistant(call("input-streaming"), id="server")
        assert reconcile([incoming], [stored])[0]["id"] == "server"

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_copy_beside_the_row_itself_is_left_out(self, order):
        exact = assistant(settled_call(), id="server")
        again = assistant(call("input-available"), id="client")
        assert reconcile([exact, again][::order], [exact]) == [exact]

    def test_7_2_user_and_system_messages_pass_as_they_are(self):
        incoming = [user(text("hi")), {"id": "s", "role": "system", "parts": [text("note")]}]
        assert reconcile(incoming, [assistant(text("hi"))]) is incoming


def test_inputs_are_never_changed():
    incoming = [assistant(call("input-available"), id="client"), assistant(text("hi"), id="x")]
    stored = [assistant(settled_call(), id="server"), assistant(text("hi"), id="y")]
    before = copy.deepcopy((incoming, stored))
    assert [m["id"] for m in reconcile(incoming, stored)] == ["server", "y"]
    assert (incoming, stored) == before
