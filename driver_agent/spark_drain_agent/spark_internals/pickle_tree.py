"""What a pickle describes, as a tree, without making it."""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Node", "pickle_tree"]

_SKIPPED = frozenset({"FRAME", "PROTO"})
_PUT = frozenset({"BINPUT", "LONG_BINPUT", "PUT"})
_GET = frozenset({"BINGET", "GET", "LONG_BINGET"})
_CHANGES = frozenset({"ADDITEMS", "APPEND", "APPENDS", "BUILD", "SETITEM", "SETITEMS"})
"""Opcodes whose first operand stays the same object."""
_GLOBAL = frozenset({"GLOBAL", "STACK_GLOBAL"})


@dataclass(eq=False)
class Node:
    """What an opcode of a pickle makes: of its argument, of what it takes from the stack, and of what later ones do to it."""

    name: str
    argument: Any
    parts: list[Node] = field(default_factory=list)
    changes: list[Node] = field(default_factory=list)

    @property
    def imported(self) -> tuple[str, str]:
        """Module and name of what is pickled by its name alone, else empty."""
        if self.name not in _GLOBAL:
            return "", ""
        module, name = str(self.argument).split(" ", 1) if self.name == "GLOBAL" else (part.argument for part in self.parts)
        return str(module), str(name)


def pickle_tree(pickled: bytes, most_opcodes: int) -> Node | None:
    """Return what a pickle describes, None of one with more opcodes."""
    stack: list[Node] = []
    memo: dict[int, Node] = {}
    for count, (operation, argument, _) in enumerate(pickletools.genops(pickled)):
        name, before = operation.name, operation.stack_before
        if count == most_opcodes:
            return None
        if name in _SKIPPED:
            continue
        if name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in _PUT:
            memo[int(str(argument))] = stack[-1]
        elif name in _GET:
            stack.append(memo[int(str(argument))])
        elif name == "POP":  # what set the state of the object beneath, as cloudpickle does it
            made = stack.pop()
            stack[-1].changes.append(made)
        elif name == "STOP":
            break
        else:
            operands = _taken(stack, before)
            if name in _CHANGES:
                operands[0].changes.append(Node(name, argument, operands[1:]))
                stack.append(operands[0])
            else:
                stack.extend(Node(name, argument, operands) for _ in operation.stack_after)
    return stack[-1]


def _taken(stack: list[Node], before: list[pickletools.StackObject]) -> list[Node]:
    """Take from the stack what an opcode takes."""
    operands: list[Node] = []
    if pickletools.markobject in before:
        mark = next(index for index in reversed(range(len(stack))) if stack[index].name == "MARK")
        operands, stack[mark:] = stack[mark + 1 :], []
        before = before[: before.index(pickletools.markobject)]
    if before:
        operands, stack[-len(before) :] = [*stack[-len(before) :], *operands], []
    return operands
