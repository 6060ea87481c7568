"""Models: the Protocol every model speaks (`base.py`), native adapters, the pydantic-ai bridge.

`resolve.py` turns what a user wrote (a string, a model, a list) into a `Model`. Nothing here knows
turns, hooks or storage; nothing outside an adapter knows a provider's types.
"""
