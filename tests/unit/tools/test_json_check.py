"""Values against JSON schemas that are data."""

import pytest

from thinkwell.tools.json_check import problems

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}


class TestFits:
    @pytest.mark.parametrize(
        ("value", "schema"),
        [
            (1, True),
            (1, {}),
            (None, {"type": ["string", "null"]}),
            ({"a": 1}, {"type": "object", "additionalProperties": {"type": "integer"}}),
            ({"name": "a", "below": [{"name": "b", "below": []}]}, TREE),
            ("b", {"anyOf": [{"const": "a"}, {"const": "b"}]}),
            (5, {"allOf": [{"minimum": 1}, {"maximum": 9}]}),
            ("ab", {"pattern": "(?<unfinished"}),
            (1, {"$ref": "#/$defs/nowhere"}),
            ([1], {"$defs": {"a/b": {"type": "array"}}, "$ref": "#/$defs/a~1b"}),
            (True, {"minimum": 5}),
        ],
    )
    def test_a_fitting_value_has_no_problems(self, value, schema):
        assert problems(value, schema) == ()


class TestDoesNotFit:
    @pytest.mark.parametrize(
        ("value", "schema", "text"),
        [
            (1, False, "not allowed"),
            ("a", {"type": "integer"}, "expected integer"),
            ("c", {"enum": ["a", "b"]}, "expected one of 'a', 'b'"),
            (1, {"const": 2}, "must be 2"),
            (0, {"minimum": 1}, "must be at least 1"),
            (2, {"maximum": 1}, "must be at most 1"),
            (1, {"exclusiveMinimum": 1}, "must be above 1"),
            (1, {"exclusiveMaximum": 1}, "must be below 1"),
            ("", {"minLength": 1}, "needs at least 1 characters"),
            ("ab", {"maxLength": 1}, "may have at most 1 characters"),
            ("b", {"pattern": "^a"}, "must match ^a"),
            ([], {"minItems": 1}, "needs at least 1 items"),
            ([1], {"maxItems": 0}, "may have at most 0 items"),
        ],
    )
    def test_each_keyword_has_its_text(self, value, schema, text):
        assert problems(value, schema) == (text,)

    def test_every_problem_is_told_with_its_path(self):
        value = {"below": [{"name": 1}, {"name": "b", "more": 2}]}
        assert problems(value, TREE) == (
            "missing field 'name'",
            "field 'below.0.name': expected string",
            "unknown field 'below.1.more'",
        )

    def test_when_no_form_fits_each_says_why(self):
        schema = {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
        (text,) = problems({"a": 1}, schema)
        assert text.startswith("field 'a': fits none of the 2 allowed forms (")
        assert "expected string" in text
        assert "expected null" in text

    def test_a_schema_that_only_names_itself_comes_to_an_end(self):
        (text,) = problems(1, {"$ref": "#"})
        assert text == "nested too deeply"
