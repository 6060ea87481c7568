"""Durable calls of an agent's methods: the record, and what a handler gets and may return."""

from thinkwell.hooks.jobs import JobContext, JobHandler, RunAgain
from thinkwell.journal.jobs import Job

__all__ = ["Job", "JobContext", "JobHandler", "RunAgain"]
