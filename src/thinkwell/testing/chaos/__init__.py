"""Chaos for an app: it is killed again and again under load, and five promises are checked.

`thinkwell chaos app.py` is the usual way in. From a test:

    report = await run_chaos(ChaosOptions(app="app.py", folder=tmp_path, kills=20, seed=7))
    assert report.ok, report.findings
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.testing.chaos.options import CannotBeginError, ChaosOptions

if TYPE_CHECKING:
    from thinkwell.testing.chaos.report import ChaosReport
    from thinkwell.testing.chaos.run import OnLife

__all__ = ["CannotBeginError", "ChaosOptions", "check_run", "run_chaos"]


async def run_chaos(options: ChaosOptions, on_life: OnLife | None = None) -> ChaosReport:
    """Run an app through its lives and judge what they left. Raises `CannotBeginError`."""
    # Imported here: every life of the app imports this package, and needs nothing of the run.
    from thinkwell.testing.chaos.run import ChaosRun

    await ChaosRun(options, on_life).run()
    return check_run(options)


def check_run(options: ChaosOptions) -> ChaosReport:
    """Judge a run by what it left in its folder: client files, effect log, lives, database."""
    import msgspec

    from thinkwell.testing.chaos.evidence import read_evidence
    from thinkwell.testing.chaos.promises import changes_words, findings_of
    from thinkwell.testing.chaos.report import make_report

    evidence = read_evidence(options.folder, scripted=options.model == "scripted")
    evidence = msgspec.structs.replace(evidence, rewrites=changes_words(evidence))
    return make_report(evidence, findings_of(evidence), options)
