"""The plan of a run: what is asked in each life of the process, and how that life ends.

Everything follows from the seed and the number of the life, so one life of a long run can be lived
again without the others. Pure.
"""

from __future__ import annotations

import random
from typing import Literal

import msgspec

from thinkwell.testing.chaos.plan import make_question, rehearsal

Ending = Literal["chunks", "tool", "asked", "listening", "reply", "stop", "point", "none"]
ENDINGS: dict[Ending, str] = {
    "chunks": "killed when clients had read {count} chunks",
    "tool": "killed while tool run {count} was under way",
    "asked": "killed right after the questions were sent",
    "listening": "killed as soon as it listened",
    "reply": "killed when a client had read the end of a reply",
    "stop": "stopped in an orderly way after {count} chunks",
    "point": "killed at the crash point {point}",
    "none": "lived to the end",
}
_RANDOM: tuple[tuple[Ending, int], ...] = (
    ("chunks", 60),
    ("tool", 20),
    ("asked", 8),
    ("reply", 8),
    ("listening", 4),
)
"""What kills, and how often in a hundred."""
LONGEST = 120
"""Chunks that clients may read in one life."""
ORDERLY = 10
"""Every tenth life is stopped, not killed: a deploy among the crashes."""


STOPS = 0.06
"""How often a client presses stop in a life."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One process, from its start to its end."""

    name: str
    """The number of a random life, or the crash point of another."""
    ending: Ending
    count: int = 0
    point: str = ""
    asks: tuple[tuple[str, ...], ...] = ()
    """The questions of each client."""
    stops: tuple[bool, ...] = ()
    """Whether a client presses stop once its first reply streams."""

    @property
    def told(self) -> str:
        """How it ends, in words."""
        return ENDINGS[self.ending].format(count=self.count, point=self.point)


def random_life(seed: int, number: int, clients: int) -> Life:
    """A life that ends at a random moment."""
    chance = random.Random(f"{seed}/{number}")
    kinds, weights = zip(*_RANDOM, strict=True)
    ending: Ending = "stop" if number % ORDERLY == 0 else chance.choices(kinds, weights)[0]
    count = chance.randint(1, 4) if ending == "tool" else chance.randint(0, LONGEST)
    return Life(
        name=str(number),
        ending=ending,
        count=count,
        asks=_asks(f"k{number}", chance, clients, most=2),
        stops=tuple(chance.random() < STOPS for _ in range(clients)),
    )


def life_at(seed: int, point: str, clients: int) -> Life:
    """A life that a named point ends, if anything in the app comes there."""
    chance = random.Random(f"{seed}/{point}")
    return Life(
        name=point,
        ending="point",
        point=point,
        asks=_asks(f"at-{point.replace(':', '-')}", chance, clients, least=2, most=3),
        stops=tuple(point.startswith("c16") for _ in range(clients)),
    )


def another_round(seed: int, point: str, number: int, clients: int) -> tuple[str, ...]:
    """One more question for each client, when nothing has come to the point so far.

    The first goes through all tools: a point may lie in one that chance has left out.
    """
    chance = random.Random(f"{seed}/{point}/{number}")
    label = f"at-{point.replace(':', '-')}.r{number}"
    if number == 0:
        return tuple(rehearsal(f"{label}.c{client}") for client in range(clients))
    return tuple(make_question(f"{label}.c{client}.q0", chance) for client in range(clients))


def _asks(
    label: str, chance: random.Random, clients: int, *, least: int = 0, most: int
) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(
            make_question(f"{label}.c{client}.q{number}", chance)
            for number in range(chance.randint(least, most))
        )
        for client in range(clients)
    )
