"""Inputs for tools, made from their schemas: they fit, and the same seed makes the same."""

from __future__ import annotations

import random
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from thinkwell.testing.chaos.values import value_for
from thinkwell.tools.tool import as_tool, from_json_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"] = "leaf"
    weight: Annotated[float, Field(gt=0, lt=3)]


class Tree(BaseModel):
    name: Annotated[str, Field(min_length=3, max_length=12)]
    below: list[Tree | Leaf] | None = None


async def many(
    text: str,
    count: Annotated[int, Field(ge=3, le=5)],
    share: float,
    colour: Colour,
    when: datetime,
    day: date,
    which: UUID,
    tree: Tree,
    flags: dict[str, bool],
    pair: tuple[int, str],
    tags: Annotated[list[str], Field(min_length=1, max_length=3)],
    both: int | str | None = None,
    even: Annotated[int, Field(multiple_of=2)] = 0,
) -> str:
    """Takes a bit of everything."""
    return "ok"


@pytest.mark.parametrize("seed", range(40))
def test_what_is_made_passes_the_validation_of_the_tool(seed: int):
    tool = as_tool(many)
    made = value_for(tool.input_schema, random.Random(seed))
    tool.validate(made)


def test_the_same_seed_makes_the_same_value():
    schema = as_tool(many).input_schema
    assert value_for(schema, random.Random(7)) == value_for(schema, random.Random(7))


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "object"}, lambda made: made == {}),
        (
            {"type": "object", "properties": {"a": True}, "required": ["a"]},
            lambda made: "a" in made,
        ),
        ({"properties": {"a": {"const": 4}}, "required": ["a"]}, lambda made: made == {"a": 4}),
        (
            {"type": "object", "properties": {"a": {"type": ["null"]}}, "required": ["a"]},
            lambda made: made == {"a": None},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string", "pattern": "^[A-Z]{3}-\\d{3}$"}},
                "required": ["a"],
            },
            lambda made: made == {"a": "ABC-123"},
        ),
    ],
)
def test_schemas_that_people_write_by_hand(schema: dict[str, Any], fits: Any):
    tool = from_json_schema("made", "By hand.", schema, lambda value, ctx: value)
    made = value_for(tool.input_schema, random.Random(1))
    tool.validate(made)
    assert fits(made)


def test_a_schema_that_refers_to_itself_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert isinstance(value_for(node, random.Random(1)), dict)
