"""Every small change of a module: one comparison, one boolean operator, one constant, one `if`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

OPPOSITES: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """A changed module."""

    name: str
    """Function, what stood there, what stands there now: stable while other lines move."""
    tree: ast.Module


def mutants_of(source: str, functions: Sequence[str] = ()) -> Iterator[Mutant]:
    """All mutants of these functions, or of the whole module."""
    original = ast.parse(source)
    seen: dict[str, int] = {}
    for place, (owner, node) in enumerate(_places(original, functions)):
        for number, (before, after) in enumerate(list(_changes(copy.deepcopy(node)))):
            tree = copy.deepcopy(original)
            _, target = list(_places(tree, functions))[place]
            next(islice(_changes(target), number, None))
            name = f"{owner}: {before}  ->  {after}"
            seen[name] = seen.get(name, 0) + 1
            counted = name if seen[name] == 1 else f"{name}  #{seen[name]}"
            yield Mutant(counted, ast.fix_missing_locations(tree))


def _places(tree: ast.Module, functions: Sequence[str]) -> Iterator[tuple[str, ast.AST]]:
    """Every node that can be changed, with the function around it."""
    for top in tree.body:
        owners = top.body if isinstance(top, ast.ClassDef) else [top]
        for owner in owners:
            name = owner.name if isinstance(owner, Function) else "module"
            if functions and name not in functions:
                continue
            for node in _walk(owner):
                yield name, node


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Depth first, without annotations, docstrings and texts: they decide nothing."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _walk(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Change the node in place, in one way after the other; yields what was and what is."""
    before = _text(node)
    match node:
        case ast.Compare(ops=[op]):
            for other in OPPOSITES[type(op)]:
                node.ops = [other()]  # type: ignore[list-item]
                yield before, _text(node)
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in OPPOSITES:
            node.op = OPPOSITES[type(op)][0]()  # type: ignore[assignment]
            yield before, _text(node)
        case ast.UnaryOp(op=ast.Not()):
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
            yield before, _text(node)
        case ast.Constant(value=bool() as value):
            node.value = not value
            yield before, _text(node)
        case ast.Constant(value=int() as value):
            node.value = value + 1
            yield before, _text(node)
        case (
            ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test)
            | ast.IfExp(test=ast.Name() | ast.Attribute() | ast.Call() as test)
        ):
            node.test = ast.UnaryOp(ast.Not(), test)
            yield f"if {_text(test)}", f"if not {_text(test)}"
        case _:
            return


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:160]
