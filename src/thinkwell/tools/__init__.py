"""Tools: what a model may call, how its arguments are checked and how the call is run.

What is listed here is public. `tool.py` has the record and the decorator, `schema.py` turns a
signature into a JSON schema and a validator, `execute.py` parses arguments and runs one call,
`scope.py` and `scope_registry.py` hold tools and context that come and go, `output.py` makes the
last answer a typed value. Waiting for approvals, hooks and the ledger belong to `turn`.
"""

from thinkwell.tools.context import ToolContext
from thinkwell.tools.fingerprint import schema_fingerprint
from thinkwell.tools.model_output import ModelOutput
from thinkwell.tools.output import Output
from thinkwell.tools.reconcile import Done, EarlierCall, NotDone
from thinkwell.tools.repair import RepairCall, RepairToolCall
from thinkwell.tools.scope import Scope
from thinkwell.tools.scope_registry import ScopeRegistry
from thinkwell.tools.stopping import StopCondition, has_tool_call, step_count_is
from thinkwell.tools.tool import Effect, Tool, client_tool, from_json_schema, tool

__all__ = [
    "Done",
    "EarlierCall",
    "Effect",
    "ModelOutput",
    "NotDone",
    "Output",
    "RepairCall",
    "RepairToolCall",
    "Scope",
    "ScopeRegistry",
    "StopCondition",
    "Tool",
    "ToolContext",
    "client_tool",
    "from_json_schema",
    "has_tool_call",
    "schema_fingerprint",
    "step_count_is",
    "tool",
]
