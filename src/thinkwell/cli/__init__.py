"""The `thinkwell` command."""
