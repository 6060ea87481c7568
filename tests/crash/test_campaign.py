"""A short campaign of random kills; `campaign.py` runs long ones."""

from __future__ import annotations

import pytest

from tests.crash.campaign import Campaign
from tests.crash.process import World

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("seed", [11, 12])
async def test_overlapping_questions_between_kills_are_all_answered_once_and_in_order(
    world: World, seed: int
):
    """Spec/04 §0, DESIGN §8.13."""
    campaign = Campaign(world, seed, agents=3)
    await campaign.run(kills=8)
    assert campaign.figures["accepted inputs"] > 8
