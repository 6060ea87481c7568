"""The provider protocols that the mock provider speaks: what each refuses, and how it answers."""
