"""CPU of a turn beside pydantic-ai, on the same mock provider, in the same run (`make bench`)."""
