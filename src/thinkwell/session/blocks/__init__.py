"""Context blocks: what an agent knows beside its messages, and the prompt that is made of it."""
