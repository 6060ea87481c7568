"""Tools: what a model may call, how its arguments are checked and how the call is run.

`tool.py` has the record and the decorator, `schema.py` turns a signature into a JSON schema and a
validator, `execute.py` parses arguments and runs one call, `scope.py` and `scope_registry.py` hold
tools and context that come and go, `output.py` makes the last answer a typed value. Waiting for
approvals, hooks and the ledger belong to `turn`.
"""

from thinkwell.tools.context import ToolContext
from thinkwell.tools.execute import (
    ParsedInput,
    approval_required,
    check_input,
    parse_input,
    run_tool,
)
from thinkwell.tools.model_output import ModelOutput, default_model_output, model_output
from thinkwell.tools.output import (
    Output,
    correction_request,
    final_answer_instruction,
    final_answer_tool,
    resolve_mode,
)
from thinkwell.tools.reconcile import Done, EarlierCall, NotDone
from thinkwell.tools.repair import RawCall, RepairCall, RepairToolCall, repair_call
from thinkwell.tools.scope import Scope, ScopeSections, inject_user
from thinkwell.tools.scope_registry import FoundTool, ScopeRegistry
from thinkwell.tools.stopping import StopCondition, has_tool_call, should_stop, step_count_is
from thinkwell.tools.tool import (
    Effect,
    Tool,
    as_tool,
    bind_tools,
    client_tool,
    from_json_schema,
    is_tool,
    tool,
)
from thinkwell.tools.truncation import limit_output

__all__ = [
    "Done",
    "EarlierCall",
    "Effect",
    "FoundTool",
    "ModelOutput",
    "NotDone",
    "Output",
    "ParsedInput",
    "RawCall",
    "RepairCall",
    "RepairToolCall",
    "Scope",
    "ScopeRegistry",
    "ScopeSections",
    "StopCondition",
    "Tool",
    "ToolContext",
    "approval_required",
    "as_tool",
    "bind_tools",
    "check_input",
    "client_tool",
    "correction_request",
    "default_model_output",
    "final_answer_instruction",
    "final_answer_tool",
    "from_json_schema",
    "has_tool_call",
    "inject_user",
    "is_tool",
    "limit_output",
    "model_output",
    "parse_input",
    "repair_call",
    "resolve_mode",
    "run_tool",
    "should_stop",
    "step_count_is",
    "tool",
]
