"""What the fingerprint of an input schema covers, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell.tools.fingerprint import schema_fingerprint

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


def changed(**properties: Any) -> dict[str, Any]:
    return {**CITY, "properties": {**CITY["properties"], **properties}}


def test_it_is_short_and_always_the_same() -> None:
    assert schema_fingerprint(CITY) == "4da34f8d7a191bd8c587fa0f9f0ff4b0"


@pytest.mark.parametrize(
    "same",
    [
        changed(city={"type": "string", "description": "Where", "title": "City"}),
        {**CITY, "description": "The weather", "$comment": "of today"},
        dict(reversed(CITY.items())),
        {**CITY, "properties": dict(reversed(CITY["properties"].items()))},
    ],
)
def test_texts_and_the_order_of_keys_do_not_matter(same: dict[str, Any]) -> None:
    assert schema_fingerprint(same) == schema_fingerprint(CITY)


@pytest.mark.parametrize(
    "other",
    [
        changed(city={"type": "integer"}),
        changed(city={"type": "string", "maxLength": 3}),
        changed(days={"type": "integer", "default": 2}),
        changed(unit={"type": "string"}),
        {**CITY, "required": ["city", "days"]},
        {**CITY, "properties": {"city": {"type": "string"}}},
    ],
)
def test_types_names_limits_and_defaults_matter(other: dict[str, Any]) -> None:
    assert schema_fingerprint(other) != schema_fingerprint(CITY)


def test_a_property_may_be_called_description() -> None:
    named = changed(description={"type": "string"})
    assert schema_fingerprint(named) != schema_fingerprint(CITY)
    described = changed(description={"type": "string", "description": "of the day"})
    assert schema_fingerprint(described) == schema_fingerprint(named)


def test_the_order_of_required_names_does_not_matter_and_an_empty_list_is_none() -> None:
    both = {**CITY, "required": ["city", "days"]}
    assert schema_fingerprint(both) == schema_fingerprint({**CITY, "required": ["days", "city"]})
    none = {key: value for key, value in CITY.items() if key != "required"}
    assert schema_fingerprint(none) == schema_fingerprint({**CITY, "required": []})


def test_values_of_enums_and_defaults_are_data() -> None:
    one = changed(days={"default": {"title": "one"}})
    assert schema_fingerprint(one) != schema_fingerprint(changed(days={"default": {}}))
