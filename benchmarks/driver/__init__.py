"""The client process: opens conversations, runs turns, says what arrived and when."""
