"""Tools: what a model may call, how its arguments are checked and how the call is run.

`tool.py` has the record and the decorator, `schema.py` turns a signature into a JSON schema and a
validator, `execute.py` parses arguments and runs one call. Approval, hooks and the ledger belong to
`turn`.
"""

from thinkwell.tools.context import ToolContext
from thinkwell.tools.execute import ParsedInput, check_input, parse_input, run_tool
from thinkwell.tools.tool import Effect, Tool, as_tool, bind_tools, from_json_schema, is_tool, tool

__all__ = [
    "Effect",
    "ParsedInput",
    "Tool",
    "ToolContext",
    "as_tool",
    "bind_tools",
    "check_input",
    "from_json_schema",
    "is_tool",
    "parse_input",
    "run_tool",
    "tool",
]
