"""Suites that say in tests what a Protocol says in words. Subclass one to prove your own driver."""
