# type: ignore
"""Names that are not there."""

# E pyright: "Thnk" is unknown import symbol
# E mypy: Module "thinkwell" has no attribute "Thnk"
from thinkwell import Thnk

# E pyright: "TurnContext" is unknown import symbol
# E mypy: Module "thinkwell" has no attribute "TurnContext"
from thinkwell import TurnContext

# E pyright: "Featur" is unknown import symbol
# E mypy: Module "thinkwell.features" has no attribute "Featur"
from thinkwell.features import Featur

__all__ = ["Featur", "Thnk", "TurnContext"]
