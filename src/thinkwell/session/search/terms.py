"""From what somebody typed to what the index is asked (pure).

User text is never query syntax: each word becomes one quoted string, in which the only character
with a meaning is the quote itself. `NEAR(`, `*`, `^`, `-`, `AND` and column names are words or
parts of words like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

MOST_WORDS = 24
"""Words of a query that count; the rest of a pasted page would only slow the search down."""
LONGEST_WORD = 100
SHORTEST_PART = 3
"""The trigram index knows nothing shorter."""
LONGEST_PART, MOST_PARTS = 2000, 20_000
"""Characters of one identifier or one run of CJK text, and of all of an entry."""

_CJK = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3040-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Scripts that are written without spaces between words, so that whole sentences are one token."""
_IDENTIFIER = re.compile(
    r"[^\W\d_]\d|\d[^\W\d_]"  # E1042, 4f3a
    r"|\w[_./:@#\\-]\w"  # snake_case, a/path, a.b.c, mail@host, a-b
    r"|[a-z][A-Z]"  # camelCase
)
_EDGES = re.compile(r"^\W+|\W+$")

_COMMON = """
a about an and any are as at be been but by can could did do does for from had has have he her here
him his how i if in into is it its may me might my no not of on or our she should so some than that
the their them then there these they this those to was we were what when where which who whom whose
why will with would you your
"""
COMMON = frozenset(_COMMON.split())
"""English words that say little. They are left out where any of the others may match, unless
nothing else was asked for: on conversations that finds a third more (benchmarks/search.py)."""


def cleaned(text: str) -> str:
    """Text that SQLite takes as it is: half surrogate pairs and NULs are gone."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def words_of(query: str) -> list[str]:
    """The words of a query, each once, in order."""
    found: dict[str, str] = {}
    for word in cleaned(query).split():
        if any(character.isalnum() for character in word):
            found.setdefault(word.casefold(), word[:LONGEST_WORD])
    return list(found.values())[:MOST_WORDS]


def telling(words: Sequence[str]) -> list[str]:
    """The words that say something; all of them if none does."""
    rest = [word for word in words if _EDGES.sub("", word).casefold() not in COMMON]
    return rest or list(words)


def quoted(word: str) -> str:
    """A word as the index takes it, whatever stands in it."""
    return '"' + word.replace('"', '""') + '"'


def match_all(words: Iterable[str], columns: str, within: str) -> str:
    """Entries with every word."""
    return _match(" AND ".join(map(quoted, words)), columns, within)


def match_phrase(words: Iterable[str], columns: str, within: str) -> str:
    """Entries with these words one after the other."""
    return _match(quoted(" ".join(words)), columns, within)


def match_scope(every: Sequence[str], one_of: Sequence[str]) -> str:
    """Entries with all of these words of their scope, and one of those; "" if there are none."""
    said = [" AND ".join(map(quoted, every)), " OR ".join(map(quoted, one_of))]
    return " AND ".join(f"{{scope}} : ({each})" for each in said if each)


def _match(expression: str, columns: str, within: str) -> str:
    said = f"{{{columns}}} : ({expression})"
    return f"{within} AND {said}" if within else said


def scope_token(kind: str, value: str) -> str:
    """A word of the `scope` column: what an entry can be narrowed down to inside the index.

    It ends with a digit, so that the stemmer leaves it alone.
    """
    return f"{kind}{blake2b(value.encode('utf-8', 'replace'), digest_size=6).hexdigest()}0"


def parts_of(text: str) -> str:
    """What of a text belongs in the trigram index: identifiers, and words in scripts without
    spaces. Whatever is left is found by its words, at a third of the space.
    """
    found: dict[str, None] = {}
    room = MOST_PARTS
    for word in text.split():
        if _CJK.search(word) or _IDENTIFIER.search(word):
            part = word[:LONGEST_PART]
            if part not in found:
                room -= len(part)
                if room < 0:
                    break
                found[part] = None
    return "\n".join(found)


def part_words(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """What to ask the trigram index, and patterns for what is too short for it.

    Short Latin words are left out: they stand in everything.
    """
    long: list[str] = []
    short: list[str] = []
    for word in words:
        if len(word) >= SHORTEST_PART:
            long.append(word)
        elif _CJK.search(word):
            short.append(pattern_of(word))
    return long, short


def pattern_of(text: str) -> str:
    r"""What LIKE takes to find a text as it is, with `\` as its escape."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", cleaned(text)) + "%"


def snippet_of(text: str, words: Sequence[str], width: int = 160) -> str:
    """The piece of a text around the words that were found, with `…` where something is left out.

    The index compares stems; here their beginnings have to do.
    """
    folded = text.casefold()
    if len(folded) != len(text):  # some characters fold to two: places would not be the same
        folded = text.lower() if len(text.lower()) == len(text) else text
    places = sorted(place for word in words if (place := _place_of(word, folded)) >= 0)
    start = max(0, _densest(places, width) - width // 4) if places else 0
    if start:  # begin with a whole word
        gap = text.find(" ", start, start + 20)
        start = gap + 1 if gap >= 0 else start
    end = min(len(text), start + width)
    if end < len(text):
        gap = text.rfind(" ", end - 20, end)
        end = gap if gap > start else end
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _place_of(word: str, folded: str) -> int:
    core = _EDGES.sub("", word).casefold()
    whole = folded.find(core) if core else -1
    return whole if whole >= 0 or not core else folded.find(core[: max(4, len(core) - 3)])


def _densest(places: Sequence[int], width: int) -> int:
    """Where a window over the most places begins."""
    return max(places, key=lambda at: (sum(at <= place < at + width for place in places), -at))
