"""Our own app under chaos (spec/04 §0, §22.8, §23.81): every named crash point once and a hundred
kills at random moments, each part with a seed of its own. `make chaos` runs a thousand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from thinkwell.journal.crash_points import BY_COMMAND, CRASH_POINTS
from thinkwell.testing.chaos import ChaosOptions, run_chaos
from thinkwell.testing.chaos.report import ChaosReport

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

APP = str(Path(__file__).parent / "app.py")
KILLS = 100
SEEDS = (11, 12, 13, 14)
AT_A_TIME = 9
POINTS = [point for point in CRASH_POINTS if point not in BY_COMMAND]
HERE = {
    *(f"c{number}" for number in range(17)),
    *(f"j{number}" for number in range(8)),
    *("a0", "a1", "a2", "a3", "a4", "d0", "d1"),
}
"""Points this app comes to. The others need an operator's command; `tests/crash` has them."""


def held(report: ChaosReport) -> None:
    """Every promise held, on something worth checking."""
    assert report.findings == [], report.reproduce
    assert report.ok
    figures = report.figures
    assert (figures["lost"], figures["doubled"], figures["out of order"]) == (0, 0, 0)
    assert figures["turns completed"] > 0
    assert figures["chunks read"] > 0


@pytest.mark.parametrize("first", range(0, len(POINTS), AT_A_TIME))
async def test_every_named_point_kills_the_app_and_every_promise_holds(tmp_path: Path, first: int):
    points = tuple(POINTS[first : first + AT_A_TIME])
    options = ChaosOptions(app=APP, folder=tmp_path, kills=0, points=points, seed=first)
    report = await run_chaos(options)
    held(report)
    missed = {point for point, reached in report.points.items() if not reached}
    assert not missed & HERE


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_kills_lose_double_and_mix_up_nothing(tmp_path: Path, seed: int):
    options = ChaosOptions(app=APP, folder=tmp_path, kills=KILLS // len(SEEDS), seed=seed)
    report = await run_chaos(options)
    held(report)
    assert report.figures["kills"] + report.figures["lives"] > KILLS // len(SEEDS)
    assert {tool.name for tool in report.tools} >= {"pay", "order", "look", "pack", "ship"}
