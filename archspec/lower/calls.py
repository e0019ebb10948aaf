"""Applying things to values: functions, operations, layers and blocks, in calls and in the steps of chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.dims import Symbolic
from archspec.ir import Constant, Module, Operand
from archspec.lower import flow as flows
from archspec.lower.address import address_text
from archspec.lower.evaluate import listed
from archspec.lower.plan import names_in
from archspec.lower.program import Frame, argument_node
from archspec.lower.units import Definition, Signature
from archspec.lower.values import POISON, Owned, Several, Tensor, describe, is_number, kind_of
from archspec.ops import REQUIRED, Op
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.lower.flow import Flow, Given, Target


def _signature(callee: Definition | Op) -> Signature:
    if isinstance(callee, Definition):
        return callee.signature
    known = _operations.get(callee.name)
    if known is None:
        variadic = bool(callee.inputs) and callee.inputs[-1].variadic
        known = _operations[callee.name] = Signature.of([(i.name, i.optional) for i in callee.inputs], variadic)
    return known


_operations: dict[str, Signature] = {}


def call(flow: Flow, expr: tree.Call) -> Any:
    """`f(x)`, `f(hyper)(x)`, `.shared(x)`."""
    if isinstance(expr.callee, tree.Name) and expr.callee.text == "len" and flow.is_builtin("len"):
        return flow.static_call(expr)
    callee = _callee(flow, expr.callee)
    if isinstance(callee, Owned):
        return _apply_owned(flow, callee, expr.lists, expr, None)
    if not _is_function(flow, callee, expr.callee):
        return POISON
    if len(expr.lists) == 1:
        takes_tensors = bool(callee.inputs if isinstance(callee, Op) else callee.node.inputs)
        lists = (None, expr.lists[0]) if takes_tensors else (expr.lists[0], None)
    else:
        lists = expr.lists[0], expr.lists[1]
    return _apply_function(flow, callee, lists[0], lists[1], expr, None)


def own(flow: Flow, expr: tree.Own, stream: Any) -> Any:
    """`address: Callee(hyper)(x)`, or as a step of a chain with its stream."""
    if flow.module is None:
        return flow.fault("ownership", "a function cannot declare anything", expr, help="make it a `layer` or `block`")
    address = address_text(flow, expr.address)
    member = flow.module.members.get(address) if address is not None else None
    if address is None or member is None or not isinstance(member.target, Module):
        return POISON  # the first pass said why
    if member.span != flow.unit.span(expr.address):
        return POISON  # a second owner of the address, which has been reported
    inputs = expr.lists[1] if len(expr.lists) > 1 else None
    definition = flow.program.definitions.get(member.target)
    if definition is None:
        return POISON
    if inputs is None and stream is None and definition.node.inputs:
        help = "pass its inputs in a second list: `address: Layer(hyper)(x)`"
        return flow.fault("wrong-kind", "this declares without applying, so it has no value", expr, help=help)
    return _apply_module(flow, address, member.target, inputs, expr, stream)


def apply_step(flow: Flow, expr: tree.Expr, stream: Any) -> Any:
    """What stands behind `|>`, applied to the stream."""
    if isinstance(expr, tree.Own):
        return own(flow, expr, stream)
    if not isinstance(expr, tree.Call):
        callee = _callee(flow, expr)
        if isinstance(callee, Owned):
            return _apply_owned(flow, callee, (), expr, stream)
        if not _is_function(flow, callee, expr):
            return POISON
        return _apply_function(flow, callee, None, None, expr, stream)
    callee = _callee(flow, expr.callee)
    if isinstance(callee, Owned):
        return _apply_owned(flow, callee, expr.lists, expr, stream)
    if not _is_function(flow, callee, expr.callee):
        return POISON
    first, *second = expr.lists
    if second:
        return _apply_function(flow, callee, first, second[0], expr, stream)
    if _has_placeholder(flow, first):
        return _apply_function(flow, callee, None, first, expr, stream)
    return _apply_function(flow, callee, first, None, expr, stream)


def _callee(flow: Flow, expr: tree.Expr) -> Any:
    return flow.resolve(expr) if isinstance(expr, tree.Reference) else flow.value(expr)


def _is_function(flow: Flow, callee: Any, node: tree.Expr) -> bool:
    """Whether `callee` is a function or operation; says so if not."""
    if isinstance(callee, Op) or (isinstance(callee, Definition) and callee.kind == "fn"):
        return True
    if callee is POISON:
        return False
    if isinstance(callee, Definition):
        help = f"declare it at an address: `name: {callee.name}(...)`"
        flow.fault("wrong-kind", f"`{callee.name}` is a {callee.kind} and needs an address", node, help=help)
    else:
        flow.fault("wrong-kind", f"cannot apply {describe(callee)}", node)
    return False


def _has_placeholder(flow: Flow, arguments: tree.Arguments) -> bool:
    known = flow.program.placeholders.get(id(arguments))
    if known is None:
        found = any(a.value is not None and "_" in names_in(a.value) for a in arguments.items)
        known = flow.program.placeholders[id(arguments)] = (arguments, found)
    return known[1]


def _apply_owned(flow: Flow, owned: Owned, lists: tuple[tree.Arguments, ...], node: tree.Expr, stream: Any) -> Any:
    if len(lists) > 1:
        help = "write `.address(x)`"
        return flow.fault(
            "surplus-argument", "`.address` already has its hyperparameters; pass only inputs", lists[1], help=help
        )
    return _apply_module(flow, owned.address, owned.module, lists[0] if lists else None, node, stream)


def _apply_module(
    flow: Flow, address: str, module: Module, inputs: tree.Arguments | None, node: Any, stream: Any
) -> Any:
    definition = flow.program.definitions.get(module)
    if definition is None:
        return POISON
    target = flows.Target(definition, module.hyperparameters, module)
    return _apply_definition(flow, target, address, inputs, node, stream)


def _apply_function(
    flow: Flow,
    callee: Op | Definition,
    hyper: tree.Arguments | None,
    inputs: tree.Arguments | None,
    node: tree.Expr,
    stream: Any,
) -> Any:
    if isinstance(callee, Op):
        return _apply_op(flow, callee, hyper, inputs, node, stream)
    values = flow.hyperparameters(callee, hyper, node)
    if values is None:
        return POISON
    return _apply_definition(flow, flows.Target(callee, values, None), "", inputs, node, stream)


def _apply_definition(
    flow: Flow, target: Target, address: str, inputs: tree.Arguments | None, node: Any, stream: Any
) -> Any:
    definition = target.definition
    signature = _signature(definition)
    values = _take(flow, definition.name, signature, inputs, node, stream)
    if values is None:
        return POISON
    given: list[Given] = []
    operands: list[tuple[str, Operand]] = []
    for name, value in zip(signature.names, values, strict=True):
        if value.__class__ is Tensor:
            given.append(value.type)
            operands.append((name, value.slot))
        elif value is None:
            given.append(None)
            operands.append((name, None))
        else:
            given.append(Constant(value))
            operands.append((name, Constant(value)))
    last = flow.last  # most often, what is applied is what was applied just before
    if last is not None and target.module is not None and last.target.module is target.module and last.given == given:
        body = last.body
    else:
        frame = Frame(definition, flow.unit, node, inputs, signature.names)
        body = flows.body_of(flow.program, target, tuple(given), frame)
        if body is None:
            return POISON
        flow.last = flows.Applied(target, given, body)
    if target.module is not None:
        flow.applied.setdefault(address, []).append(body)
    return flow.emit(definition.kind, definition.name, address, body, tuple(operands), {}, body.results, node)


def _apply_op(
    flow: Flow, op: Op, hyper: tree.Arguments | None, inputs: tree.Arguments | None, node: Any, stream: Any
) -> Any:
    names = [a.name for a in op.attributes]
    given = flow.match(op.name, names, hyper, "hyperparameter")
    if given is None:
        return POISON
    if ".." in given:
        return flow.fault(
            "surplus-argument", f"`..` cannot forward hyperparameters to the operation `{op.name}`", given[".."]
        )
    attributes: dict[str, Any] = {}
    failed = False
    for attribute in op.attributes:
        item = given.get(attribute.name)
        if item is None or item.value is None:
            if attribute.default is REQUIRED:
                message = f"missing hyperparameter `{attribute.name}` in call to `{op.name}`"
                flow.fault("missing-argument", message, node, help=f"expected hyperparameters: {listed(names)}")
                failed = True
            attributes[attribute.name] = attribute.default
            continue
        value = flow.value(item.value)
        if isinstance(value, Tensor | Several | Owned):
            message = f"hyperparameter `{attribute.name}` of `{op.name}` expects a constant, found {describe(value)}"
            help = f"pass hyperparameters in the first list and tensors in the second: `{op.name}(...)(x)`"
            return flow.fault("wrong-kind", message, item, help=help)
        failed = failed or value is POISON
        attributes[attribute.name] = value
    signature = _signature(op)
    values = _take(flow, op.name, signature, inputs, node, stream)
    if values is None or failed:
        return POISON
    if op.scalar is not None and not attributes and all(map(is_number, values)):
        return flow.scalar(op, values, node)
    taken = signature.spread(len(values))

    def place(name: str) -> Any:
        if name in given:
            return given[name]
        return argument_node(inputs, taken, name) or node

    return flow.apply_op(op, tuple(zip(taken, values, strict=True)), attributes, node, place)


def _take(
    flow: Flow,
    callee: str,
    signature: Signature,
    arguments: tree.Arguments | None,
    node: Any,
    stream: Any,
) -> list[Any] | None:
    """The inputs of a use in declared order, None where absent; None for all if they are wrong, which was reported."""
    if arguments is None:
        return _take_stream(flow, callee, signature, node, stream)
    if stream is not None and not _has_placeholder(flow, arguments):
        help = "mark its position with `_`"
        flow.fault("stream", f"the piped value is not passed to `{callee}`", arguments, help=help)
        return None
    items = arguments.items
    names = signature.spread(len(items)) if signature.variadic else signature.names
    exprs: list[tree.Expr | None] | None = None
    if len(items) <= len(names):
        exprs = [item.value if not item.name else None for item in items]
    if exprs is not None and None not in exprs:
        exprs += [None] * (len(names) - len(items))
    else:
        given = flow.match(callee, names, arguments, "input")
        if given is None:
            return None
        if ".." in given:
            flow.fault("surplus-argument", "`..` forwards hyperparameters and is not allowed among inputs", given[".."])
            return None
        exprs = [given[name].value if name in given else None for name in names]
    values: list[Any] = []
    failed = False
    for name, expr in zip(names, exprs, strict=True):
        if expr is None:
            if name not in signature.optional:
                help = f"expected inputs: {listed(names)}"
                flow.fault("missing-argument", f"missing input `{name}` in call to `{callee}`", node, help=help)
                failed = True
            values.append(None)
            continue
        value = flow.value(expr)
        if value.__class__ is not Tensor and not _is_input(flow, callee, name, value, expr, name in signature.optional):
            failed = True
        values.append(value)
    return None if failed else values


def _take_stream(flow: Flow, callee: str, signature: Signature, node: Any, stream: Any) -> list[Any] | None:
    needed = signature.needed
    have = 0 if stream is None else 1
    if have and not signature.names:
        flow.fault("surplus-argument", f"`{callee}` takes no inputs and cannot be a chain step", node)
        return None
    if len(needed) > have:
        help = f"expected inputs: {listed(signature.names)}"
        if have:
            help += "; mark the position of the piped value with `_`"
        flow.fault("missing-argument", f"missing input `{needed[have]}` in call to `{callee}`", node, help=help)
        return None
    values: list[Any] = [None] * len(signature.names)
    if have:
        values[0] = stream
    return values


def _is_input(flow: Flow, callee: str, name: str, value: Any, item: tree.Expr, optional: bool) -> bool:
    """Whether `value`, which is no tensor, can be the input `name`; says so if not."""
    if value is POISON:
        return False
    if value is None:
        if not optional:
            flow.fault("wrong-kind", f"input `{name}` of `{callee}` expects a tensor, found `none`", item)
        return optional
    if isinstance(value, int | float | Symbolic):
        return True
    if isinstance(value, Several):
        message = f"input `{name}` of `{callee}` expects one tensor, found {len(value.values)} outputs"
        flow.fault("wrong-kind", message, item, help="assign them to names first: `a, b = ...`")
        return False
    help = "pass hyperparameters in the first list and tensors in the second" if kind_of(value) != "value" else None
    flow.fault("wrong-kind", f"input `{name}` of `{callee}` expects a tensor, found {describe(value)}", item, help=help)
    return False
