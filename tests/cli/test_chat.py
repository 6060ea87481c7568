"""`thinkwell chat` between pipes: a line in is a message, the answer comes out as it is."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, DEMO, environment, thinkwell
from thinkwell.cli.chat import Target, agent_url
from thinkwell.cli.links import LinkError

pytestmark = pytest.mark.timeout(120)


async def test_an_answer_streams_and_tools_are_shown(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        output = await chat.ends("What is the weather in Paris?\n/exit\n")
    assert chat.status == 0
    assert '✓ get_weather(city: "Paris") → {"city":"Paris"' in output
    assert "- **city**: Paris" in output


def test_only_the_answer_goes_to_the_standard_output(tmp_path: Path):
    done = subprocess.run(
        [*COMMAND, "chat", DEMO, "--store", f"sqlite:///{tmp_path}/x.db"],
        input="Roll the dice\n",
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    model, answer = done.stdout.splitlines()
    assert model.startswith("Model: demo")  # the example itself says that
    assert answer.startswith("The tool `roll_dice` says: ")
    assert "✓ roll_dice()" in done.stderr


async def test_the_conversation_goes_on_where_it_stopped(tmp_path: Path):
    store = tmp_path / "x.db"
    async with thinkwell("chat", DEMO, store=store) as chat:
        await chat.ends("hello\n")
    async with thinkwell("chat", DEMO, store=store) as chat:
        assert '> hello\nYou said: "hello"' in await chat.ends("/history\n")


async def test_names_are_conversations(tmp_path: Path):
    async with thinkwell("chat", DEMO, "--name", "one", store=tmp_path / "x.db") as chat:
        output = await chat.ends("hello\n/new two\n/history\n/new one\n/history\n/new\n")
    empty, back, fresh = output.split("This is the conversation")[1:]
    assert "Nothing has been said yet." in empty
    assert "> hello" in back
    assert fresh.startswith(" 'chat-")


@pytest.mark.parametrize(
    ("reply", "said"),
    [("y", "All reports are gone"), ("n", "did not allow"), ("", "did not allow")],
)
async def test_permission_is_asked_for_and_no_answer_is_no(tmp_path: Path, reply: str, said: str):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        output = await chat.ends(f"delete the report\n{reply}")
    assert "Allow delete_report()? [y/n]" in output
    assert said in output


QUICK = """
from thinkwell import Think, tool
from thinkwell.testing import ScriptedModel, call

class Payer(Think):
    model = ScriptedModel([[call("pay", {"n": 2})], "I did not pay."])

    @tool(needs_approval=True)
    def pay(self, n: int) -> str:
        "Pay."
        return "paid"
"""


async def test_an_answer_that_is_over_at_once_is_shown_after_a_permission(tmp_path: Path):
    """Such an answer ends before the terminal has joined its stream."""
    app = tmp_path / "quick.py"
    app.write_text(QUICK)
    async with thinkwell("chat", str(app), store=tmp_path / "x.db") as chat:
        output = await chat.ends("pay it\nn\n")
    assert chat.status == 0
    assert output.count("I did not pay.") == 1


async def test_an_error_is_shown_and_is_the_exit_status(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        output = await chat.ends("fail\n")
    assert "Here is half an\n" in output
    assert "\n✗ " in output
    assert "Traceback" not in output
    assert chat.status == 1


async def test_retry_makes_a_branch_and_switch_goes_back(tmp_path: Path):
    lines = ("first", "/retry", "/branches", "/switch 1", "/switch 1", "/nonsense", "/usage")
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        output = await chat.ends("\n".join(lines))
    assert output.count('You said: "first"') >= 4  # two answers, the list, and the one gone back to
    assert "   1  You said" in output
    assert "●  2  You said" in output
    assert "/branches lists the versions first." in output
    assert "There is no command /nonsense. /help lists them." in output
    assert "Last answer: " in output


async def test_clear_deletes_the_conversation(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        output = await chat.ends("hello\n/clear\n/history\n/retry\n/usage\n/branches\n/help\n")
    after = output.split("The conversation is empty now.")[1]
    assert "Nothing has been said yet." in after
    assert "There is no question yet." in after
    assert "There is no answer yet." in after
    assert "one version of everything" in after
    assert "/switch N" in after


async def test_ctrl_c_stops_the_answer_and_not_the_chat(tmp_path: Path):
    async with thinkwell("chat", DEMO, store=tmp_path / "x.db") as chat:
        chat.write("count to 900\n")
        await chat.says("1, 2, 3")
        chat.process.send_signal(signal.SIGINT)
        await chat.says("stopped")
        assert 'You said: "hello"' in await chat.ends("hello\n/exit\n")
    assert chat.status == 0


async def test_a_running_server_can_be_named_in_three_ways(tmp_path: Path):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as server:
        url = await server.address()
        for path in ("/", "/agents/assistant", "/agents/assistant/default"):
            async with thinkwell("chat", url + path) as chat:
                assert f'You said: "by {path}"' in await chat.ends(f"by {path}\n")
        async with thinkwell("chat", url) as chat:
            assert (await chat.ends("/history\n")).count("> by ") == 3


@pytest.mark.parametrize("path", ["", "/agents/nobody/x"])
async def test_nobody_there_is_one_line(tmp_path: Path, path: str):
    async with thinkwell("serve", DEMO, "--port", "0", store=tmp_path / "x.db") as server:
        url = await server.address()
        if not path:
            server.process.send_signal(signal.SIGINT)
            await server.ends()
        async with thinkwell("chat", url + path) as chat:
            output = await chat.ends()
    assert chat.status == 1
    assert output.startswith("Error: There is no ")
    assert len(output.splitlines()) == 1


async def test_a_killed_server_is_waited_for_and_nothing_is_lost_or_doubled(tmp_path: Path):
    """spec/01 §3.4.3: chunks have numbers, so what was shown is not shown again."""
    serve = ("serve", DEMO, "--port")
    async with thinkwell(*serve, "0", store=tmp_path / "x.db") as server:
        url = await server.address()
        async with thinkwell("chat", url) as chat:
            chat.write("count to 100\n")
            start = (await chat.says("1, 2, 3, 4, 5,"))[0]
            server.process.kill()
            await server.process.wait()
            async with thinkwell(*serve, url.rpartition(":")[2], store=tmp_path / "x.db"):
                rest = await chat.ends()
    counted = (start + rest).partition(". Done.")[0]
    assert [int(number) for number in counted.split(",")] == list(range(1, 101))


async def test_a_server_may_want_to_know_who_asks(tmp_path: Path):
    """spec/01 §1.3.3: a terminal close code is not tried again."""
    app = tmp_path / "guarded.py"
    app.write_text(
        "from thinkwell import App, Think\n"
        "class A(Think): model = 'demo'\n"
        "def auth(request, route):\n"
        "    return 'ada' if request.headers.get('authorization') == 'Bearer open' else None\n"
        "app = App(agents=[A], auth=auth)\n"
    )
    async with thinkwell("serve", str(app), "--port", "0", store=tmp_path / "x.db") as server:
        url = await server.address()
        async with thinkwell("chat", url) as chat:
            refused = await chat.ends("hello\n")
        assert "--header 'Authorization" in refused
        assert len(refused.splitlines()) == 1  # and nothing about sessions left open
        assert chat.status == 1
        async with thinkwell("chat", url, "--header", "Authorization: Bearer open") as chat:
            assert 'You said: "hello"' in await chat.ends("hello\n")
        async with thinkwell("chat", url, "--header", "nonsense") as chat:
            assert "is no header" in await chat.ends()


async def test_whoever_may_neither_clear_nor_decide_is_told_so_once(tmp_path: Path):
    """DESIGN §8.13: a refused client gets what is stored; the terminal says what that means."""
    app = tmp_path / "strict.py"
    app.write_text(
        "from thinkwell import Think, tool\n"
        "from thinkwell.testing import ScriptedModel, call\n"
        "class A(Think):\n"
        "    model = ScriptedModel([[call('pay')], 'Back again.'])\n"
        "    @tool(needs_approval=True)\n"
        "    async def pay(self) -> str: return 'paid'\n"
        "    def authorize(self, action, principal, subject):\n"
        "        return action not in ('approve', 'clear')\n"
    )
    async with thinkwell("chat", str(app), store=tmp_path / "x.db") as chat:
        output = await chat.ends("pay it\ny\n/clear\n/history\nstill here?\n")
    assert output.count("Allow pay()?") == 1
    assert output.count("You may not decide this.") == 1
    assert output.count("You may not clear this conversation.") == 1
    assert "empty now" not in output
    assert "> pay it" in output.split("You may not clear")[1]
    assert "Back again." in output


@pytest.mark.parametrize("place", ["/agents/assitant/ada", "/agents/assitant", "/"])
async def test_a_misspelt_agent_is_told_which_there_are(tmp_path: Path, place: str):
    """spec/01 §1.1: on the wire it is a plain 400. The server has answered and logs no error."""
    app = tmp_path / "two.py"
    app.write_text(
        "from thinkwell import Think\nclass Assistant(Think): model = 'demo'\n"
        "class Helper(Think): model = 'demo'\n"
    )
    async with thinkwell("serve", str(app), "--port", "0", store=tmp_path / "x.db") as server:
        address = await server.address()
        await server.says("Press Ctrl-C to stop.\n")
        async with thinkwell("chat", f"{address}{place}", "--agent", "assitant") as chat:
            said = await chat.ends("hello\n")
        assert said == (
            f"Error: There is no agent 'assitant' at {address}; it has assistant, helper.\n"
        )
        assert chat.status == 1
        server.process.terminate()
        assert await server.ends() == ""


async def test_an_agent_that_does_not_chat_says_so(tmp_path: Path):
    app = tmp_path / "counter.py"
    app.write_text("from thinkwell import Agent\nclass Counter(Agent): ...\n")
    async with thinkwell("chat", str(app), store=tmp_path / "x.db") as chat:
        assert "This agent does not chat" in await chat.ends("hello\n")
    assert chat.status == 1


async def test_the_url_of_an_agent_needs_no_server_to_be_understood():
    target = Target(path="http://127.0.0.1:1/my/agents/assistant/ada?token=x")
    assert await agent_url(target, {}) == ("http://127.0.0.1:1/my/agents/assistant", "ada")


async def test_a_url_nobody_listens_at_is_an_error():
    with pytest.raises(LinkError, match="There is no Thinkwell server"):
        await agent_url(Target(path="http://127.0.0.1:1"), {})
