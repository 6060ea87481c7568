"""What the model reads of a stored output (spec/02 §9.11)."""

import pytest

from thinkwell.tools.model_output import default_model_output, model_output


async def convert(function, output: object = "stored"):
    return await model_output(function, tool_call_id="c1", input={"a": 1}, output=output)


class TestDefault:
    @pytest.mark.parametrize(
        ("output", "kind"), [("text", "text"), ({"a": 1}, "json"), (None, "json"), (3, "json")]
    )
    async def test_text_stays_text_and_everything_else_is_json(self, output, kind):
        made = await convert(None, output)
        assert made == default_model_output(output)
        assert (made.kind, made.value) == (kind, output)


class TestConverter:
    async def test_it_gets_the_call_by_keyword(self):
        seen = {}

        def converter(**call):
            seen.update(call)
            return {"type": "text", "value": "short"}

        assert (await convert(converter)).value == "short"
        assert seen == {"tool_call_id": "c1", "input": {"a": 1}, "output": "stored"}

    async def test_it_may_be_async(self):
        async def converter(**call):
            return {"type": "json", "value": [1]}

        assert (await convert(converter)).value == [1]

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("text", "a"),
            ("json", {"a": [1]}),
            ("content", [{"type": "text", "text": "a"}]),
            ("error-text", "broken"),
            ("error-json", {"code": 1}),
            ("execution-denied", "no"),
            ("execution-denied", None),
        ],
    )
    async def test_every_kind_comes_through(self, kind, value):
        made = await convert(lambda **call: {"type": kind, "value": value})
        assert (made.kind, made.value, made.error) == (kind, value, None)

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            "text",
            {"value": 1},
            {"type": "image", "value": 1},
            {"type": ["text"], "value": 1},
            {"type": "text", "value": 1},
            {"type": "content", "value": "text"},
            {"type": "content", "value": [1]},
            {"type": "execution-denied", "value": 1},
            {"type": "json", "value": {1, 2}},
        ],
    )
    async def test_an_answer_of_the_wrong_shape_leaves_json_of_the_output(self, answer):
        made = await convert(lambda **call: answer)
        assert (made.kind, made.value) == ("json", "stored")
        assert isinstance(made.error, ValueError)

    async def test_a_converter_that_raises_leaves_json_of_the_output_and_its_error(self):
        problem = RuntimeError("file is gone")

        def converter(**call):
            raise problem

        made = await convert(converter)
        assert (made.kind, made.value, made.error) == ("json", "stored", problem)
