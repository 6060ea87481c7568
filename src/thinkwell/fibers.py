"""Functions that remember how far they came: the mark, what they get, and how they stand."""

from thinkwell.features.fibers.context import FiberContext, FiberRecovery, fiber
from thinkwell.journal.fibers import Fiber, FiberStatus

__all__ = ["Fiber", "FiberContext", "FiberRecovery", "FiberStatus", "fiber"]
