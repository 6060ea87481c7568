"""Patterns for the arguments of a tool: which calls a rule allows without asking again.

A pattern names each argument with a test: `{"path": {"glob": "tmp/*"}, "force": False}`. There are
four tests (`equals`, `prefix`, `glob`, `any`), and a plain text, number, boolean or null means
`equals`. An argument that the pattern does not name must not be in the call; the name `*` stands
for all that are not named. Everything here is pure and takes bounded time, whatever a model writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

from thinkwell.core import json
from thinkwell.core.errors import ApprovalError
from thinkwell.core.spelling import did_you_mean

TESTS: Final = ("equals", "prefix", "glob", "any")
REST: Final = "*"
"""Names every argument that is not named otherwise."""
MOST_ARGUMENTS, LONGEST_TEXT, LONGEST_VALUE = 50, 200, 2_000
"""How many arguments a pattern names, how long its texts are, and how long a value is compared."""
MOST_STARS: Final = 20
"""How many stars the globs of one pattern have together."""
_EXAMPLE: Final = '`{"path": {"glob": "tmp/*"}, "force": False}`'


def read_pattern(given: Any) -> dict[str, dict[str, Any]]:
    """A pattern in its stored form: one test for each argument. Raises `ApprovalError`."""
    if not isinstance(given, Mapping) or not given:
        raise ApprovalError(
            f"A rule was given arguments={given!r:.100}. Name each argument and what it may be: "
            f'{_EXAMPLE}. Any call of the tool is `{{"*": {{"any": True}}}}`.'
        )
    named = cast("Mapping[Any, Any]", given)
    if len(named) > MOST_ARGUMENTS:
        raise ApprovalError(f"A rule names {len(named)} arguments; at most {MOST_ARGUMENTS} can.")
    pattern = {_name(name): _read_test(str(name), test) for name, test in named.items()}
    stars = sum(test["glob"].count("*") for test in pattern.values() if "glob" in test)
    if stars > MOST_STARS:
        raise ApprovalError(
            f"A rule has {stars} stars in its globs; at most {MOST_STARS} can. Make "
            'several rules of it, or write {"prefix": "..."}.'
        )
    return pattern


def exactly(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The pattern that only this very call fits. Raises `ApprovalError` if there is none."""
    if REST in arguments:  # in a pattern that name speaks of all other arguments
        raise ApprovalError(
            f"No rule can allow a call with an argument named {REST!r}: in a rule, that stands for "
            "all other arguments. Approve such calls one by one."
        )
    return {name: {"equals": value} for name, value in arguments.items()}


def fits(pattern: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> bool:
    """Whether a call's arguments fit a stored pattern. In doubt they do not."""
    rest = pattern.get(REST)
    for name, value in arguments.items():
        test = pattern.get(name, rest) if name != REST else None
        if test is None or not _passes(test, value):
            return False
    absent = (pattern[name] for name in pattern if name != REST and name not in arguments)
    return all("any" in test for test in absent)


def matches_glob(glob: str, text: str) -> bool:
    """`*` stands for any characters but `/`, `**` for any characters at all.

    A set of places in the glob is a number with a bit for each, so that a character is one step,
    however many places are alive.
    """
    tokens = _tokens(glob)
    within = sum(1 << place for place, token in enumerate(tokens) if token == "*")
    across = sum(1 << place for place, token in enumerate(tokens) if token == "**")
    stars = within | across
    moves: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if not stars >> place & 1:
            moves[token] = moves.get(token, 0) | 1 << place
    places = 1 | (stars & 1) << 1  # a star may stand for nothing; no two stars are neighbours
    for character in text:
        stays = across if character == "/" else stars
        places = (places & moves.get(character, 0)) << 1 | places & stays
        places |= (places & stars) << 1
        if not places:
            return False
    return bool(places >> len(tokens) & 1)


def _name(name: Any) -> str:
    if isinstance(name, str) and 0 < len(name) <= LONGEST_TEXT:
        return name
    raise ApprovalError(f"{name!r:.100} is no name of an argument. Write for example {_EXAMPLE}.")


def _read_test(name: str, test: Any) -> dict[str, Any]:
    if test is None or isinstance(test, str | int | float | bool):
        return {"equals": json.to_jsonable(test)}
    if isinstance(test, Mapping) and len(cast("Mapping[Any, Any]", test)) == 1:
        ((kind, value),) = cast("Mapping[Any, Any]", test).items()
        if kind == "equals":
            return {"equals": json.to_jsonable(value)}
        if kind == "any" and value is True:
            return {"any": True}
        if kind in ("prefix", "glob") and isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT:
            return {str(kind): value}
        near = "" if kind in TESTS else did_you_mean(kind, TESTS)
        raise ApprovalError(
            f"{name!r} has the test {test!r:.100}.{near} Write one of "
            f'{{"equals": ...}}, {{"prefix": "..."}}, {{"glob": "..."}} (texts of at most '
            f'{LONGEST_TEXT} characters) or {{"any": True}}.'
        )
    raise ApprovalError(
        f'{name!r} has the test {test!r:.100}. For exactly this value write {{"equals": ...}}.'
    )


def _passes(test: Mapping[str, Any], value: Any) -> bool:
    ((kind, wanted),) = test.items()
    if kind == "any":
        return True
    if kind == "equals":
        # As JSON text: for Python, 1 equals True.
        return json.canonical(value) == json.canonical(wanted)
    if not isinstance(value, str) or len(value) > LONGEST_VALUE or _climbs(value):
        return False
    return value.startswith(wanted) if kind == "prefix" else matches_glob(wanted, value)


def _climbs(text: str) -> bool:
    """Whether it goes up with `..`, as a path or a URL: `tmp/../etc` does not begin with `tmp/`."""
    plain = unquote(unquote(text)).replace("\\", "/")
    return ".." in plain.split("/") or "\0" in plain


def _tokens(glob: str) -> list[str]:
    tokens: list[str] = []
    for character in glob:
        if character == "*" and tokens and tokens[-1] in ("*", "**"):
            tokens[-1] = "**"
        else:
            tokens.append(character)
    return tokens
