"""The classes users subclass, and what connects them to everything below."""
