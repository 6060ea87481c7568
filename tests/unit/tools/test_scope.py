"""Scopes and the sections they put into a request (spec/02 §12.5-12.7, AC75, AC76)."""

import pytest

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    TextContent,
    UserMessage,
)
from thinkwell.tools import Scope, Tool
from thinkwell.tools.scope import inject_user, render_sections

PICTURE = FileContent("data:image/png;base64,AA==", "image/png")


def user(*content):
    return UserMessage(tuple(TextContent(c) if isinstance(c, str) else c for c in content))


def fails():
    raise RuntimeError("no page open")


class TestScope:
    def test_functions_become_tools(self):
        def add_item(name: str) -> None: ...

        scope = Scope("cart", tools=[add_item])
        assert [type(item) for item in scope.tools] == [Tool]
        assert scope.tools[0].name == "add_item"

    def test_the_label_is_the_name_unless_given(self):
        assert Scope("cart").heading == "cart"
        assert Scope("cart", label="Shopping cart").heading == "Shopping cart"

    def test_two_scopes_with_the_same_fields_are_two(self):
        assert Scope("cart") != Scope("cart")

    @pytest.mark.parametrize("enabled", [lambda: False, fails])
    def test_it_is_off_when_enabled_says_no_or_raises(self, enabled):
        assert not Scope("cart", enabled=enabled).is_enabled()

    def test_an_empty_name_a_wrong_place_and_an_async_switch_are_refused(self):
        async def enabled() -> bool:
            return True

        for fields in ({"name": ""}, {"name": "a", "injection": "x"}):
            with pytest.raises(ToolDefinitionError):
                Scope(**fields)  # type: ignore[arg-type]
        with pytest.raises(ToolDefinitionError, match="scope 'a' is async"):
            Scope("a", enabled=enabled)  # type: ignore[arg-type]


class TestSections:
    async def test_without_scopes_there_is_no_text(self):
        sections = await render_sections([Scope("a"), Scope("b", context=lambda: None)])
        assert (sections.system, sections.user) == ("", "")

    async def test_text_stays_as_it_is_and_other_values_are_json(self):
        async def cart():
            return {"items": [1]}

        scopes = [
            Scope("page", label="Page", context=lambda: "  You are here.\n"),
            Scope("cart", context=cart),
            Scope("fixed", context="Always."),
        ]
        assert (await render_sections(scopes)).system == (
            '## Page\n  You are here.\n\n\n## cart\n{"items":[1]}\n\n## fixed\nAlways.'
        )

    async def test_each_scope_says_where_its_section_goes(self):
        scopes = [
            Scope("a", context="A"),
            Scope("b", context="B", injection="user"),
            Scope("c", context="C", injection="user"),
        ]
        sections = await render_sections(scopes)
        assert (sections.system, sections.user) == ("## a\nA", "## b\nB\n\n## c\nC")

    @pytest.mark.parametrize("context", [fails, lambda: {1, 2}, lambda: object(), lambda: " "])
    async def test_a_context_that_fails_is_blank_or_no_json_is_left_out(self, context):
        sections = await render_sections([Scope("a", context=context), Scope("b", context="B")])
        assert sections.system == "## b\nB"

    async def test_a_scope_that_is_off_is_not_even_asked(self):
        asked = []
        scope = Scope("a", context=lambda: asked.append(1) or "A", enabled=lambda: False)
        assert (await render_sections([scope])).system == ""
        assert asked == []


class TestInjection:
    def test_the_section_follows_the_text_of_the_last_user_message(self):
        answer = AssistantMessage((TextContent("Hello"),))
        messages = (user("one"), user("two"), answer)
        assert inject_user(messages, "## a\nA") == (user("one"), user("two\n\n## a\nA"), answer)
        assert messages[1] == user("two")

    def test_files_stay_where_they_are(self):
        assert inject_user([user("look", PICTURE)], "A") == (user("look\n\nA", PICTURE),)
        assert inject_user([user(PICTURE)], "A") == (user(PICTURE, "A"),)

    def test_without_a_user_message_or_a_text_nothing_changes(self):
        answer = (AssistantMessage((TextContent("Hello"),)),)
        assert inject_user(answer, "A") == answer
        assert inject_user([user("hi")], "") == (user("hi"),)
        assert inject_user([], "A") == ()
