"""Fibers: functions of an agent whose progress outlives the process."""
