"""Calls that wait for somebody: the question, the decision, and rules that always allow."""

from thinkwell.features.approvals import ListedRule
from thinkwell.journal.approval_rules import ApprovalRule
from thinkwell.journal.approvals import Approval
from thinkwell.journal.decisions import Decision

__all__ = ["Approval", "ApprovalRule", "Decision", "ListedRule"]
