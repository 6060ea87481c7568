# type: ignore
"""A class where a feature, which is an object, belongs."""

from __future__ import annotations

from thinkwell import App, Think, create_agent
from thinkwell.features import Feature, Without


class Notes(Feature):
    name = "notes"


class Listed(Think):
    # E pyright: "type[Notes]" is not assignable to type "Feature"
    # E mypy: List item 0 has incompatible type "type[Notes]"
    features = [Notes]


class Right(Think):
    features = [Notes(), Without("http_run")]


# E pyright: Argument of type "list[type[Notes]]"
# E mypy: List item 0 has incompatible type "type[Notes]"
app = App(agents=[Right], features=[Notes])
# E pyright: Argument of type "list[type[Notes]]"
# E mypy: List item 0 has incompatible type "type[Notes]"
agent = create_agent(model="demo", features=[Notes])
