"""A model of your own: one class with a name and a `stream` method.

This one repeats the question in capitals. Replace the loop with calls to whatever you have: a
library in this process, a server in your rack. `thinkwell.testing.contracts.model` checks the rest.
"""

from collections.abc import AsyncIterator

from thinkwell import AbortSignal, App, Think
from thinkwell.models import (
    Failure,
    Finish,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextEnd,
    TextStart,
)


class ShoutingModel:
    provider = "shouting"
    model_id = "loud-1"

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        if signal.aborted:
            return
        try:
            words = self.last_words(request)
        except ValueError as error:
            yield Failure(error)  # failures are told, not raised
            return
        yield TextStart("text")
        for word in words:
            if signal.aborted:
                return  # somebody pressed stop: end without a word
            yield TextDelta("text", word)
        yield TextEnd("text")
        yield Finish(reason="stop")

    def last_words(self, request: ModelRequest) -> list[str]:
        texts = [getattr(part, "text", "") for part in request.messages[-1].content]
        if not any(texts):
            raise ValueError("There is nothing to repeat.")
        return [f"{word.upper()} " for word in " ".join(texts).split()]


class Parrot(Think):
    model = ShoutingModel()


app = App(agents=[Parrot])
