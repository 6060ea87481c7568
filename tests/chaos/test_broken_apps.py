"""The checker is worth something only if it catches what is broken: each app here breaks one
promise and is killed where that shows (spec/04 §22.8).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from thinkwell.testing.chaos import CannotBeginError, ChaosOptions, check_run, run_chaos
from thinkwell.testing.chaos.report import ChaosReport

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

BROKEN = Path(__file__).parent / "broken"


async def ran(folder: Path, app: str, *points: str, patience: float = 60.0) -> ChaosReport:
    options = ChaosOptions(
        app=str(BROKEN / f"{app}.py"),
        folder=folder,
        kills=0,
        points=points,
        clients=2,
        seed=3,
        patience=patience,
    )
    return await run_chaos(options)


def broken_in(report: ChaosReport) -> set[str]:
    return {finding.promise for finding in report.findings}


async def test_a_message_that_is_lost_breaks_p1(tmp_path: Path):
    report = await ran(tmp_path, "loses_messages", "c4")
    assert not report.ok
    assert report.figures["lost"] > 0
    assert {f.promise for f in report.findings if "no such turn" in f.what} == {"P1"}


async def test_text_that_is_lost_breaks_p1(tmp_path: Path):
    report = await ran(tmp_path, "loses_text", "c12")
    assert "P1" in broken_in(report)
    assert report.figures["lost"] > 0


async def test_a_tool_that_runs_twice_breaks_p2_and_is_named(tmp_path: Path):
    report = await ran(tmp_path, "doubles_tools", "c8")
    assert {(finding.promise, finding.tool) for finding in report.findings} == {("P2", "pay")}
    assert {f.what for f in report.findings} == {"pay is declared 'once' and ran twice"}
    (pay,) = report.tools
    assert (pay.name, pay.effect, pay.allowed) == ("pay", "once", False)
    assert pay.twice == len(report.findings)


async def test_text_that_is_said_twice_breaks_p3(tmp_path: Path):
    report = await ran(tmp_path, "doubles_text", "c4:12")
    assert broken_in(report) == {"P3"}
    assert report.figures["doubled"] > 0


async def test_a_turn_that_never_ends_breaks_p4(tmp_path: Path):
    report = await ran(tmp_path, "hangs", "c4", patience=4)
    assert broken_in(report) == {"P4"}
    assert any("still 'running'" in finding.what for finding in report.findings)


async def test_what_broke_can_be_run_again_and_the_folder_judged_again(tmp_path: Path):
    app = BROKEN / "doubles_tools.py"
    report = await ran(tmp_path, "doubles_tools", "c8")
    assert report.reproduce == [f"thinkwell chaos {app} --seed 3 --clients 2 --at c8 --kills 0"]
    again = check_run(ChaosOptions(app=str(app), folder=tmp_path, clients=2, seed=3))
    assert again.findings == report.findings


async def test_an_app_that_fails_without_kills_is_said_to(tmp_path: Path):
    app = tmp_path / "app.py"
    app.write_text(
        "from thinkwell import Think\n"
        "class Bad(Think):\n"
        "    def get_tools(self):\n"
        "        raise ValueError('no tools today')\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(CannotBeginError, match="no tools today"):
        await run_chaos(ChaosOptions(app=str(app), folder=folder, kills=1))


async def test_an_app_that_does_not_start_is_said_to(tmp_path: Path):
    app = tmp_path / "app.py"
    app.write_text("import nothing_of_that_name\n")
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(CannotBeginError, match="nothing_of_that_name"):
        await run_chaos(ChaosOptions(app=str(app), folder=folder, kills=1))
