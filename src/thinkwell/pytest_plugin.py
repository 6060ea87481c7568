"""The fixture `replay`, for everybody who has Thinkwell and pytest installed.

pytest loads this module in every project, so it imports nothing of ours before a test asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.host.replaying import Replay


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Callable[..., Replay]:
    """`replay("case.json", Agent)`: run a recorded turn with the code of today and compare.

    A path is looked up beside the test first. See `thinkwell.testing.replay`.
    """

    def run(case: Any, agent: Any, **options: Any) -> Replay:
        from thinkwell.testing import replay as replayed

        if isinstance(case, str | Path):
            beside = request.path.parent / case
            case = beside if beside.exists() else case
        return replayed(case, agent, **options)

    return run
