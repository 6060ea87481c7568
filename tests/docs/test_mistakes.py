"""The most likely mistakes, each caught where it is made, and the page that lists them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from thinkwell.core.spelling import distance, nearest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mistakes.md"
START = "from thinkwell import *\nfrom thinkwell.features import Feature\n"


class Mistake(NamedTuple):
    """A program that is wrong, and what whoever wrote it reads."""

    wrote: str
    """As the page shows it."""
    told: str
    code: str = ""
    """The whole program, if it is more than what the page shows."""


def body(wrote: str, told: str) -> Mistake:
    """A line in the body of an agent class."""
    rest = "" if wrote.startswith(("model", "def get_model", "def model")) else "model = 'demo'"
    return Mistake(wrote, told, f"class A(Think):\n    {rest or 'pass'}\n    {wrote}")


def turn(wrote: str, told: str) -> Mistake:
    """The same, but it only shows in a turn: where the result says it."""
    made = body(wrote, told)
    return made._replace(code=f"{made.code}\n{TURN}")


def awake(wrote: str, told: str) -> Mistake:
    """A call of an agent from outside."""
    call = f"async with App([A], store='sqlite://:memory:') as app: await app.agent(A).{wrote}"
    job = "async def send_receipt(self, payload, ctx): ..."
    code = f"class A(Think):\n    model = 'demo'\n    {job}\nasync def main():\n    {call}"
    return Mistake(f"await app.agent(A).{wrote}", told, code)


def served(wrote: str, told: str) -> Mistake:
    """The same, but it only shows when an app with the class starts: before it listens."""
    made = body(wrote, told)
    return made._replace(code=f"{made.code}\n{SERVED}")


SERVED = textwrap.dedent("""
    async def main():
        async with App([A], store="sqlite://:memory:"): ...
""")
TURN = textwrap.dedent("""
    async def main():
        async with App([A], store="sqlite://:memory:") as app:
            result = await app.agent(A).run("hi")
            raise RuntimeError(result.error)
""")
COUNT = "from pydantic import BaseModel\nclass Count(BaseModel):\n    n: int\n"
OWN = 'If the name is your own, say so: `class A(..., own_names=["{}"])`.'

FORMS = (
    'Give a text such as "hello", a message such as {"role": "user", "content": "hello"}, or a '
    "list of messages."
)


def asked(wrote: str, told: str, before: str = "") -> Mistake:
    """A call of an agent that runs."""
    code = f"{before}class A(Think):\n    model = 'demo'\n"
    main = textwrap.dedent(f"""
        async def main():
            async with App([A], store="sqlite://:memory:") as app:
                await app.agent(A).{wrote}
    """)
    return Mistake(f"await app.agent(A).{wrote}", told, code + main)


IN_THE_CLASS = [
    body(
        "def before_trun(self, ctx): ...",
        "A.before_trun would do nothing. Did you mean the hook 'before_turn'? "
        + OWN.format("before_trun"),
    ),
    body(
        "def before_run(self, ctx): ...",
        "A.before_run would do nothing. Did you mean the hook 'before_turn'? "
        + OWN.format("before_run"),
    ),
    body(
        "max_step = 3",
        "A.max_step would do nothing. Did you mean the setting 'max_steps'? "
        + OWN.format("max_step"),
    ),
    body(
        'sytem_prompt = "Be brief."',
        "A.sytem_prompt would do nothing. Did you mean the setting 'system_prompt'? "
        + OWN.format("sytem_prompt"),
    ),
    body(
        'def getSystemPrompt(self): return "Be brief."',
        "A.getSystemPrompt would do nothing. Did you mean the hook 'get_system_prompt'? "
        + OWN.format("getSystemPrompt"),
    ),
    body(
        'instructions = "Be brief."',
        'A.instructions would do nothing. Write `system_prompt = "..."`. '
        + OWN.format("instructions"),
    ),
    body(
        "max_tokens = 500",
        "A.max_tokens would do nothing. Write `return TurnConfig(max_output_tokens=500)` in "
        "`before_turn`. " + OWN.format("max_tokens"),
    ),
    body(
        "def on_finish(self, ctx): ...",
        "A.on_finish would do nothing. Did you mean the hook 'on_chat_response'? "
        + OWN.format("on_finish"),
    ),
    body(
        "tools = [print]",
        "A.tools would do nothing. Write `@tool` above methods of the class, or `def "
        "get_tools(self)` that returns them by name. " + OWN.format("tools"),
    ),
    body(
        'message_concurrency = "quue"',
        "A.message_concurrency is 'quue'. Use one of queue, latest, merge, drop, debounce, steer, "
        'or {"strategy": "debounce", "debounce_ms": 750}. Did you mean \'queue\'?',
    ),
    body("max_steps = '3'", "A.max_steps is '3'. Give a whole number, 1 or more."),
    body(
        'tool_execution = "paralel"',
        "A.tool_execution is 'paralel'. Give 'parallel' or 'sequential'. Did you mean 'parallel'?",
    ),
    body(
        'def system_prompt(self): return "Be brief."',
        "A.system_prompt is a method, but a setting is a value. Write "
        "`def get_system_prompt(self)`.",
    ),
    body(
        "model = int",
        "A.model is <class 'int'>. Give a name such as \"openai-chat:gpt-4o-mini\", or a model "
        "object.",
    ),
    body(
        "state = {}",
        "A.state = {} would hide Agent.state. The state an agent begins with is "
        "`initial_state = ...`.",
    ),
    Mistake(
        "initial_state = Count",
        "A.initial_state is the class Count. Give a state: `initial_state = Count(...)`.",
        f"{COUNT}class A(Think[Count]):\n    initial_state = Count",
    ),
    body(
        "initial_state = object()",
        "A.initial_state cannot be stored: value is a object, which JSON cannot hold. Give JSON "
        "data, a dataclass or a pydantic model.",
    ),
    Mistake(
        'initial_state = {"n": "many"}',
        "A.initial_state does not fit Count: field 'n': Input should be a valid integer",
        f"{COUNT}class A(Think[Count]):\n    initial_state = {{'n': 'many'}}\n{SERVED}",
    ),
    Mistake(
        "class A(Think[Count]): ...",
        "A has no initial_state, so its state could not be read as Count until one is set. Write "
        "`initial_state = Count(...)`, or `Think[Count | None]`.",
        f"{COUNT}class A(Think[Count]): ...\n{SERVED}",
    ),
    body(
        "def before_turn(self): ...",
        "A.before_turn(self) cannot be called: it is given other arguments. Write "
        "`def before_turn(self, ctx)`.",
    ),
    body(
        "def __init__(self): ...",
        "A defines __init__, but agents are woken by the host and take no arguments. Set things up "
        "in `async def on_start(self)` instead.",
    ),
    body(
        '@hook("before_trun")\n    def f(self, ctx): ...',
        "There is no hook event 'before_trun'. Did you mean 'before_turn'?",
    ),
    body(
        "@hook\n    def f(self, ctx): ...",
        "@hook stands above a method without saying when it is called. Write "
        '`@hook("before_turn")`.',
    ),
    body(
        "@hook()\n    def f(self, ctx): ...",
        '@hook is not told its event. Write `@hook("before_turn")`.',
    ),
    Mistake(
        "class A(Think, name=3)",
        "3 cannot be the name of A: use lower-case letters, digits and dashes, for example "
        '`class A(Think, name="assistant")`.',
        "class A(Think, name=3): ...",
    ),
    Mistake(
        'class A(Think, nmae="a")',
        "`class A(..., nmae=...)` has no meaning. Did you mean 'name'? A class line takes `name` "
        "and `own_names`; settings stand in the class body.",
        'class A(Think, nmae="a"): ...',
    ),
    Mistake(
        "features = [Notes]",
        "A.features has the class Notes. Write `Notes()`: a feature is an object.",
        "class Notes(Feature):\n    name = 'notes'\nclass A(Think):\n    features = [Notes]",
    ),
    Mistake(
        "class Notes(Feature): def before_trun(self, ctx): ...",
        "Notes.before_trun would do nothing. Did you mean the hook 'before_turn'? If the name is "
        "your own, choose another, or begin it with an underscore.",
        "class Notes(Feature):\n    name = 'notes'\n    def before_trun(self, ctx): ...\n"
        "class A(Think):\n    features = [Notes()]",
    ),
]
IN_A_TOOL = [
    Mistake(
        '@tool("search") def search(self): ...',
        "@tool('search') is a text. Write @tool(name='search').",
        "class A(Think):\n    @tool('search')\n    def search(self): ...",
    ),
    Mistake(
        '@tool(desciption="Finds pages.") def search(self): ...',
        "@tool has no 'desciption'. Did you mean 'description'?",
        "class A(Think):\n    @tool(desciption='Finds pages.')\n    def search(self): ...",
    ),
    *[
        Mistake(
            f"@tool({option}) def pay(self): ...",
            f"Tool 'A.pay' has {option}. {wants}",
            f"class A(Think):\n    @tool({option})\n    def pay(self): ...",
        )
        for option, wants in {
            "effect='read'": "Use one of pure, idempotent, once, tx.",
            "timeout='5'": "Give seconds above 0, or None.",
            "needs_approval='no'": "Give True, False, or a function of the input and the context.",
        }.items()
    ],
    Mistake(
        "@tool def search(self, *words: str): ...",
        "Tool 'A.search' has the parameter `*words: str`. Models send named arguments: write "
        "`words: ...` as an ordinary parameter instead.",
        "class A(Think):\n    @tool\n    def search(self, *words: str): 'Finds pages.'",
    ),
    served(
        '@tool\n    def search(self, words: "Words"): ...',
        "Tool 'A.search' has the parameter `words: Words`, and name 'Words' is not defined. "
        "Define the type, or import it at module level, outside `if TYPE_CHECKING`.",
    ),
    served(
        "@tool\n    def search(self, words: App): ...",
        "Tool 'A.search' has the parameter 'words' of the type thinkwell.server.app.App, which a "
        "model cannot send. Give a type that JSON can hold: str, int, list[str], a dataclass, a "
        "TypedDict or a pydantic model.",
    ),
    body(
        "@property\n    @tool\n    def pages(self): ...",
        "A.pages is a property, so its mark does nothing. Leave out `@property`: tools and hooks "
        "are methods.",
    ),
    Mistake(
        '@rpc("find") def search(self): ...',
        "@rpc('find') is a text. Write @rpc(name='find').",
        "class A(Think):\n    @rpc('find')\n    def search(self): ...",
    ),
    Mistake(
        "@rpc(streming=True) def search(self): ...",
        "@rpc has no 'streming'. Did you mean 'streaming'?",
        "class A(Think):\n    @rpc(streming=True)\n    def search(self): ...",
    ),
    Mistake(
        "@rpc(readonly=True) def search(self): ...",
        "@rpc has no 'readonly'. Did you mean 'read_only'?",
        "class A(Think):\n    @rpc(readonly=True)\n    def search(self): ...",
    ),
    body(
        "@tool\n    def search(words: str): ...",
        "The tool A.search has no `self`. Write it as the first parameter, or `@staticmethod` "
        "above `@tool`.",
    ),
    Mistake(
        "@tool def search(words): 'Finds pages.'",
        "Tool 'search' takes 'words' without a type, so the model is not told what to send. Write "
        "`words: str`, or another type.",
        "@tool\ndef search(words): 'Finds pages.'",
    ),
    Mistake(
        "@tool def search(words: str): ...",
        "Tool 'search' has no description, so the model has to guess from its name. Write a "
        'docstring, or @tool(description="...").',
        "@tool\ndef search(words: str): ...",
    ),
]
IN_A_CALL = [
    Mistake('TurnConfig(temperature="hot")', "TurnConfig.temperature is 'hot'. Give a number."),
    Mistake(
        'TurnConfig(active_tools="read")',
        "TurnConfig.active_tools is 'read'. Give a list, for example `[\"read\"]`.",
    ),
    Mistake(
        "TurnConfig(temprature=0.2)",
        "TurnConfig has no 'temprature'. Did you mean 'temperature'?",
    ),
    Mistake(
        'TurnConfig(system_prompt="Be brief.")',
        "TurnConfig has no 'system_prompt'. Did you mean 'system'?",
    ),
    Mistake(
        "TurnConfig(max_tokens=100)",
        "TurnConfig has no 'max_tokens'. Did you mean 'max_output_tokens'?",
    ),
    Mistake(
        'TurnConfig(timeout="5")',
        "TurnConfig.timeout is wrong. The time limit total is '5'. Give seconds above 0, or None "
        "for no limit.",
    ),
    Mistake(
        'TurnConfig(timeout={"tol": 3})',
        "TurnConfig.timeout is wrong. There is no time limit 'tol'. Known: connect, first_chunk, "
        "chunk, step, tool, tools, hook, job, total, approval, grace. Did you mean 'tool'?",
    ),
    Mistake(
        'StepConfig(tool_choice="search")',
        'StepConfig.tool_choice is \'search\'. Give "auto", "none", "required", '
        '`NamedTool("search")` or `{"type": "tool", "tool_name": "search"}`.',
    ),
    Mistake(
        'TurnConfig(messages="hi")',
        "TurnConfig.messages is 'hi'. Give a list, for example "
        '`[{"role": "user", "content": "hi"}]`.',
    ),
    Mistake(
        'TurnConfig(provider_options={"openai": 3})',
        "TurnConfig.provider_options is {'openai': 3}. Give them by name, for example "
        '`{"openai": {"user": "me"}}`.',
    ),
    Mistake(
        'Output(int, retries="2")',
        "Output has retries='2'. Give a whole number, 0 or more.",
    ),
    Mistake(
        'Principal("ann")',
        "Principal('ann') does not name its field. Write `Principal(id=...)`.",
    ),
    Mistake("TurnConfig(output=int)", "TurnConfig.output is <class 'int'>. Give `Output(Model)`."),
    Mistake(
        "App(A)",
        "App(A) is one class. Write a list: `App(agents=[A])`.",
        "class A(Think): ...\nApp(A)",
    ),
    Mistake(
        'App(agents=[A], stroe="sqlite:///a.db")',
        "App() has no 'stroe'. Did you mean 'store'?",
        'class A(Think): ...\nApp(agents=[A], stroe="sqlite:///a.db")',
    ),
    Mistake(
        'App(agents=[A], store="a.db")',
        "'a.db' has no scheme. Did you mean \"sqlite:///a.db\"?",
        'class A(Think): ...\nApp(agents=[A], store="a.db")',
    ),
    Mistake(
        'App(agents=[A], auth="secret")',
        "App(auth=...) is 'secret'. Give a function: "
        "`App(auth=lambda request, route: user_of(request))`.",
        'class A(Think): ...\nApp(agents=[A], auth="secret")',
    ),
    Mistake(
        "app.agent(A, 3)",
        "An agent's name is a text, not 3. Write `app.agent(A, '3')`.",
        "class A(Think): ...\nApp([A]).agent(A, 3)",
    ),
    Mistake(
        'app.agent(A, "")',
        "An agent's name is a text, not ''. Write `app.agent(A, 'default')`.",
        "class A(Think): ...\nApp([A]).agent(A, '')",
    ),
    Mistake(
        'create_agent(model="demo", name=3)',
        "An agent's name is a text, not 3. Write `create_agent(name='3')`.",
    ),
    Mistake(
        'await app.agent(A).rnu("hi")',
        "A has no method 'rnu'. Did you mean 'run'?",
        "class A(Think): ...\nApp([A]).agent(A).rnu('hi')",
    ),
    awake('run("hi", max_step=3)', "run() has no 'max_step'. Did you mean 'max_steps'?"),
    awake('jobs.enqueue("send", dely=5)', "jobs.enqueue() has no 'dely'. Did you mean 'delay'?"),
    awake(
        'jobs.enqueue("send_reciept")',
        "A has no public method 'send_reciept' to run as a job. Did you mean 'send_receipt'?",
    ),
    awake(
        'jobs.enqueue("send_receipt", due=60)',
        "enqueue() was given due=60, which is in 1970. Give delay=60 for a job that begins so many "
        "seconds from now.",
    ),
    awake(
        'jobs.enqeue("send")',
        "A has no public method 'jobs.enqeue'. Did you mean 'jobs.enqueue'?",
    ),
    Mistake(
        'app.events.subscribe(print, agnet="a/x")',
        "subscribe() has no 'agnet'. Did you mean 'agent'?",
        "class A(Think): ...\nApp([A]).events.subscribe(print, agnet='a/x')",
    ),
    Mistake(
        'agent.add_hook("before_turn", "x")',
        "add_hook('before_turn', 'x'): give a function to call.",
        "create_agent(model='demo').add_hook('before_turn', 'x')",
    ),
    Mistake(
        'agent.add_hook(print, "before_turn")',
        "add_hook(print, ...) does not begin with the name of an event. Write "
        "`add_hook('before_turn', print)`.",
        "create_agent(model='demo').add_hook(print, 'before_turn')",
    ),
    Mistake(
        '@agent.add_hook("before_turn") def f(ctx): ...',
        "add_hook('before_turn') is given no function. Write `add_hook('before_turn', function)`, "
        "or `@hook('before_turn')` above a method of the class.",
        "agent = create_agent(model='demo')\n@agent.add_hook('before_turn')\ndef f(ctx): ...",
    ),
    Mistake(
        "await app.agent(A).hello()",
        '`app.agent(A, "default").hello` does not work: only async methods can be called from '
        "outside an agent. Add `async def call_hello(self): return self.hello()` to A and write "
        '`await app.agent(A, "default").call_hello()`.',
        "class A(Think):\n    def hello(self): ...\nApp([A]).agent(A).hello()",
    ),
    Mistake(
        'app.agent(A).add_hook("before_turn", f)',
        '`app.agent(A, "default").add_hook` does not work: an agent adds its hooks itself. Write '
        '`async def on_start(self): self.add_hook(...)` in A, or `@hook("before_turn")` above one '
        "of its methods.",
        "class A(Think): ...\nApp([A]).agent(A).add_hook('before_turn', print)",
    ),
    Mistake(
        'app.agent(A).run_sync("hi")',
        "A has no method 'run_sync'. Write `await app.agent(A, \"default\").run(...)`.",
        "class A(Think): ...\nApp([A]).agent(A).run_sync('hi')",
    ),
    Mistake(
        'await A().run("hi")',
        "A() is not awake: made by hand, it has no conversation, state or storage. Write "
        "`async with App(agents=[A]) as app:` and use `app.agent(A)`, or `create_agent(...)`.",
        "class A(Think): ...\nasync def main():\n    await A().run('hi')",
    ),
    asked("run(3)", f"3 is no input. {FORMS}"),
    asked('run(b"hello")', f"b'hello' is no input. {FORMS}"),
    asked(
        'run({"role": "person", "content": "hello"})',
        f"needs a `role`: one of user, assistant, system. {FORMS}",
    ),
    asked(
        'run("hi", output="City")',
        "'City' is a text, not a class. Give the class without quotes: `output=City`.",
    ),
    asked(
        'run("hi", output=City(name="Oslo"))',
        "City(name='Oslo') is a value, not a class. Give the class: `output=City`.",
        "from pydantic import BaseModel\nclass City(BaseModel):\n    name: str\n",
    ),
    Mistake(
        'ScriptedModel("Hello")',
        "ScriptedModel('Hello') is no list of steps. Write one step for each call of the model: "
        '`ScriptedModel([[call("add")], "done"])`.',
        'from thinkwell.testing import ScriptedModel\nScriptedModel("Hello")',
    ),
    Mistake('create_agent("demo")', "create_agent() takes named arguments. Write `model='demo'`."),
    Mistake(
        'create_agent(model="demo", max_step=3)',
        "create_agent() has no setting 'max_step'. Did you mean 'max_steps'?",
    ),
    Mistake(
        'create_agent(model="demo", instructions="Be brief.")',
        "create_agent() has no setting 'instructions'. Write `system_prompt = \"...\"`.",
    ),
    Mistake(
        'create_agent(model="demo", on_step_finish=print)',
        "create_agent() has no setting 'on_step_finish'. A hook is no setting. Write "
        '`agent.add_hook("on_step_finish", ...)`, or `def on_step_finish(self, ...)` in a class.',
    ),
    Mistake(
        'create_agent(model="demo", tools=search)',
        "create_agent(tools=search): give a list, tools=[...].",
        "def search(): ...\ncreate_agent(model='demo', tools=search)",
    ),
]
IN_A_TURN = [
    turn(
        "def configure_session(self, session): ...",
        "A.configure_session() returned None. Return the session: `return session`.",
    ),
    turn(
        "async def on_start(self): self.state = {}",
        "`self.state = ...` would reach nobody. Write `await self.set_state(...)`, which stores it "
        "and shows it to every client.",
    ),
    turn(
        "def get_tools(self): return [1]",
        'A.get_tools() returned [1]. Return them by name, for example `{"search": search}`.',
    ),
    turn("def get_system_prompt(self): ...", "A.get_system_prompt() returned None. Return a text."),
    turn(
        "def get_model(self): ...",
        'A.get_model() returned None. Return a name such as `"openai-chat:gpt-4o-mini"`, or a '
        "model object.",
    ),
    turn(
        'def before_turn(self, ctx): return {"temprature": 1}',
        "A.before_turn returned a wrong answer: TurnConfig has no 'temprature'. Did you mean "
        "'temperature'?",
    ),
]
IN_A_MODEL = [
    turn(
        'model = "gpt-4o"',
        "'gpt-4o' names no provider. Did you mean \"openai:gpt-4o\"?",
    ),
    turn(
        'model = "opnai:gpt-4o"',
        "There is no provider 'opnai'. Did you mean \"openai:gpt-4o\"?",
    ),
    turn(
        'model = "openai-chat:gpt-4o"',
        "The model 'openai-chat:gpt-4o' needs a key. Set OPENAI_API_KEY, pass api_key=..., or "
        "point OPENAI_BASE_URL at a server that needs none.",
    ),
    turn(
        'model = "groq:llama"',
        "The model 'groq:llama' needs a key. Set GROQ_API_KEY, or pass api_key=....",
    ),
    turn(
        "model = None",
        'A has no model. Write `model = "openai-chat:gpt-4o-mini"` in the class, or override '
        "get_model().",
    ),
]
MISTAKES = [*IN_THE_CLASS, *IN_A_TOOL, *IN_A_CALL, *IN_A_TURN, *IN_A_MODEL]
WARNS = ("without a type", "has no description", "A.before_run")
"""These only warn: the tool works, and the method may be one's own."""


def run(code: str) -> None:
    """Run a program; if it has a `main`, that too."""
    names: dict[str, object] = {"__name__": "mistakes"}
    exec(START + code, names)
    if "main" in names:
        asyncio.run(names["main"]())  # type: ignore[operator]


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.wrote)
def test_a_mistake_is_caught_where_it_is_made(mistake: Mistake, monkeypatch: pytest.MonkeyPatch):
    for key in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GROQ_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    if any(words in mistake.told for words in WARNS):
        with pytest.warns(UserWarning, match=re.escape(mistake.told)):
            run(mistake.code)
        return
    with pytest.raises(Exception, match=re.escape(mistake.told)):
        run(mistake.code or mistake.wrote)


def rows() -> dict[str, str]:
    """The page's table: what was written → what is read."""
    found = re.findall(r"^\| `` (.*?) `` \| `` (.*) `` \|$", PAGE.read_text(), re.M)
    return {wrote: told.replace(r"\|", "|") for wrote, told in found}


def test_the_page_lists_the_mistakes_with_the_texts_that_are_read():
    assert rows() == {plain(each.wrote): plain(each.told) for each in MISTAKES}
    assert len(MISTAKES) >= 30


def test_a_warning_about_a_tool_names_its_place_and_comes_once(tmp_path: Path):
    program = tmp_path / "agents.py"
    program.write_text(
        "from thinkwell import Think, create_agent\n"
        "import asyncio\n"
        "def search(words):\n"
        "    'Finds pages.'\n"
        "class A(Think):\n"
        "    model = 'demo'\n"
        "    def get_tools(self): return {'search': search}\n"
        "agent = create_agent(model='demo', tools=[search])\n"
        "agent = create_agent(model='demo', tools=[search])\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("UserWarning") == 1
    assert done.stderr.startswith(f"{program}:3: UserWarning: Tool 'search' takes 'words' without")


# Names of one's own


OWN_NAMES = {
    "a tool": "@tool\n    def get_tool(self) -> str:\n        'A tool.'\n        return ''",
    "a call of clients": "@rpc\n    def on_closed(self, connection, code, reason): ...",
    "another shape": "def get_tool(self, name): ...",
    "a helper the class uses": (
        "def get_tool(self): ...\n    def on_start(self):\n        self.get_tool()"
    ),
    "a value the class uses": (
        "max_tries = 3\n    def on_start(self):\n        print(self.max_tries)"
    ),
    "a value it uses by name": (
        "max_tries = 3\n    def on_start(self):\n        getattr(self, 'max_tries')"
    ),
    "a public method": "async def prompt(self, text): ...",
    "a private name": "_max_step = 3",
    "another word": "mode = 'fast'",
    "a nested class": "class features_: ...",
    "an async generator": "async def on_chunks(self, a, b):\n        yield 1",
}


@pytest.mark.parametrize("written", OWN_NAMES.values(), ids=OWN_NAMES.keys())
def test_a_name_of_ones_own_is_left_alone(written: str):
    run(f"class A(Think):\n    {written}")


def test_create_agent_lists_each_setting_once_and_only_what_can_be_given():
    for wrong in ("setting", "zzz"):
        with pytest.raises(TypeError) as caught:
            run(f"create_agent(model='demo', {wrong}=1)")
        words = re.findall(r"\w+", str(caught.value).partition("Settings are:")[2])
        assert "max_steps" in words
        assert len(words) == len(set(words))
        assert "'settings'" not in str(caught.value)


def test_create_agent_says_how_to_write_a_misspelt_hook_and_a_method():
    with pytest.raises(TypeError, match=r'add_hook\("on_step_finish", \.\.\.\)'):
        run("create_agent(model='demo', on_step_finsh=print)")
    with pytest.raises(TypeError, match=r"Write `def get_model\(self, \.\.\.\)` in a class"):
        run("create_agent(model='demo', get_model=print)")


@pytest.mark.parametrize(
    "written",
    [
        "def on_started(self): ...",
        "def on_closed(self, connection, code, reason): ...",
        "def get_tool(self): ...",
        "def before_run(self, ctx): ...",
        "def before_turns(self, ctx): ...",
    ],
)
def test_a_method_that_may_be_ones_own_is_warned_about_and_not_refused(written: str):
    with pytest.warns(UserWarning, match=r"would do nothing\. Did you mean the hook .*own_names="):
        run(f"class A(Think):\n    {written}")


@pytest.mark.parametrize(
    "written",
    [
        "def before_trun(self, ctx): ...",
        "def beforeTurn(self, ctx): ...",
        "def before_tturn(self, ctx): ...",
        "def befor_turn(self, ctx): ...",
        "def on_step_finnish(self, ctx): ...",
        "max_step = 3",
        "max_stepp = 3",
        "sytem_promt = 'Be brief.'",
    ],
)
def test_a_slip_in_a_hook_and_everything_near_a_setting_is_refused(written: str):
    with pytest.raises(Exception, match=r"would do nothing\. Did you mean the"):
        run(f"class A(Think):\n    {written}")


def test_a_feature_is_warned_about_in_the_same_way():
    with pytest.warns(UserWarning, match=r"Notes\.before_run would do nothing\. Did you mean"):
        run(
            "class Notes(Feature):\n    name = 'notes'\n    def before_run(self, ctx): ...\n"
            "class A(Think):\n    features = [Notes()]"
        )


def test_a_warning_about_a_method_names_its_place_and_comes_once(tmp_path: Path):
    program = tmp_path / "agents.py"
    program.write_text(
        "from thinkwell import Think\n"
        "for _ in range(2):\n"
        "    class A(Think):\n"
        "        def on_started(self): ...\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("UserWarning") == 1
    assert f"{program}:4: UserWarning: A.on_started would do nothing." in done.stderr


@pytest.mark.parametrize(
    "written",
    [
        *[f"def {name}(self, ctx): ..." for name in ("after_turn", "on_turn_end", "on_chat_end")],
        *["def on_tool_call(self, ctx): ...", "def on_startup(self): ..."],
        *[f"{name} = 3" for name in ("timeout", "llm", "retries", "output", "hooks", "sys_prompt")],
    ],
)
def test_what_other_libraries_call_it_is_refused_with_our_name(written: str):
    with pytest.raises(Exception, match="would do nothing"):
        run(f"class A(Think):\n    {written}")


def test_a_near_name_can_be_declared_ones_own_and_subclasses_may_use_it():
    run("class A(Think, own_names=['max_step']):\n    max_step = 3\nclass B(A):\n    max_step = 4")


def test_a_hook_may_be_written_in_any_shape_that_can_be_called():
    run(
        "class A(Think):\n"
        "    def before_turn(self, *args): ...\n"
        "    async def on_chat_error(self, error): ...\n"
        "    def classify_chat_error(self, error, ctx, more=None): ...\n"
        "    @staticmethod\n"
        "    def on_chunk(ctx): ...\n"
        "    @hook('on_chunk')\n"
        "    def more(self, ctx, tag='x'): ..."
    )


def test_a_tool_may_name_a_type_that_stands_further_down():
    run(
        "class A(Think):\n"
        "    @tool\n"
        "    def search(self, words: 'Words'): 'Finds pages.'\n"
        f"Words = list[str]\n{SERVED}"
    )


def test_the_tools_of_a_feature_are_read_before_an_app_listens():
    with pytest.raises(Exception, match=re.escape("Tool 'Notes.note' has the parameter `x: Nope`")):
        run(
            "class Notes(Feature):\n"
            "    name = 'notes'\n"
            "    @tool\n"
            "    def note(self, x: 'Nope'): 'Notes it.'\n"
            f"class A(Think):\n    features = [Notes()]\n{SERVED}"
        )


def test_a_setting_may_be_a_property():
    run("class A(Think):\n    @property\n    def max_steps(self): return 3")


def test_get_model_may_be_async():
    code = "class A(Think):\n    async def get_model(self): return 'demo'\n" + TURN
    with pytest.raises(RuntimeError, match="None"):  # the turn had no error
        run(code)


def test_what_a_property_raises_is_not_hidden():
    run(
        "class A(Think):\n"
        "    @property\n"
        "    def total(self): return self.amount.value\n"
        "try:\n    A().total\nexcept AttributeError as error:\n"
        "    assert 'amount' in str(error), error"
    )


def test_a_forgotten_await_names_the_method():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run("create_agent(model='demo').run('hi')")
    assert "coroutine 'InlineAgent.run' was never awaited" in str(heard[0].message)


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [("trun", "turn", 1), ("max_step", "max_steps", 1), ("same", "same", 0), ("abc", "xyz", 3)],
)
def test_a_swapped_pair_counts_as_one_wrong_letter(one: str, other: str, wrong: int):
    assert distance(one, other) == distance(other, one) == wrong


def test_short_names_are_near_to_little():
    assert nearest("rnu", ["run"]) == "run"
    assert nearest("ask", ["run"]) is None
    assert nearest("run", ["run"]) is None
