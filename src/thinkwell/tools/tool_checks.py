"""Options of a tool that would do nothing, or not what they say: refused where they are written.

The error shows what to write instead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from thinkwell.core.errors import ToolDefinitionError


def check_options(name: str, options: Any, *, has_handler: bool) -> None:
    """Look at the options of a `Tool`, or of what `@tool` leaves on a function.

    Refuse `approvers` that nobody would be asked, and a `reconcile` that is never called.
    """
    if options.approvers is not None:
        _check_approvers(name, options.approvers)
        if has_handler and options.needs_approval is False:
            raise ToolDefinitionError(
                f"Tool {name!r} has approvers, but runs without asking anybody. Write "
                "@tool(needs_approval=True, approvers=...)."
            )
    if options.reconcile is not None:
        _check_reconcile(name, options)


def _check_approvers(name: str, approvers: Any) -> None:
    if callable(approvers) or (isinstance(approvers, str) and approvers):
        return
    if isinstance(approvers, Collection) and not isinstance(approvers, str | bytes):
        ids = list(cast("Collection[Any]", approvers))
        if ids and all(isinstance(each, str) and each for each in ids):
            return
    raise ToolDefinitionError(
        f"Tool {name!r} has approvers={approvers!r}, which names nobody. Give a principal's id, "
        'several, or a function: @tool(needs_approval=True, approvers={"boss"}).'
    )


def _check_reconcile(name: str, options: Any) -> None:
    if not callable(options.reconcile):
        raise ToolDefinitionError(
            f"Tool {name!r} has reconcile={options.reconcile!r}. Give a function of the earlier "
            'call: @tool(effect="once", reconcile=find_payment).'
        )
    if options.effect != "once":
        raise ToolDefinitionError(
            f"Tool {name!r} has effect={options.effect!r}, so its calls may be repeated and "
            'reconcile is never asked. Write @tool(effect="once", reconcile=...).'
        )
