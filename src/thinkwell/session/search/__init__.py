"""The index over what was said: built from the message tree, never a record of its own."""
