"""What happens inside, told to whoever subscribed to `app.events`: for metrics, logs and tests."""

from thinkwell.core.bus import Event, EventBus, Subscriber

__all__ = [
    "Event",
    "EventBus",
    "Subscriber",
]
