"""Context blocks in turns: the tools with which a model reads and writes them."""
