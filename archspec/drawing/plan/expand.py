"""The nodes of a plan: every application in a body, with repeated ones once, and what is inside each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.compiler.evaluate.values import static_values, to_plain
from archspec.core.addresses import ANY_INDEX
from archspec.core.diagnostics import internal_error
from archspec.drawing.graph.fold import CallRun, RunFinder
from archspec.drawing.graph.sheet import GraphBuilder
from archspec.drawing.plan.amounts import ByteSum
from archspec.drawing.plan.arrange import arrange
from archspec.drawing.plan.labels import label_children
from archspec.drawing.plan.plan import Node, Plan, Port
from archspec.drawing.plan.ports import set_sides
from archspec.drawing.plan.scope import Key, Keys, Scope
from archspec.drawing.plan.tensors import Holdings
from archspec.ir.fold import passed_through_slot
from archspec.ir.module import Body, Call, Constant, Module, Type, labels_by_address
from archspec.ir.ops import OPS
from archspec.ir.ops.record import Op
from archspec.ir.origins import InputOrigins
from archspec.ir.table import Table
from archspec.ir.work import Quantity, WorkSum

_SIGNS = {"+": "+", "*": "\N{MULTIPLICATION SIGN}"}
"""The signs of operators that are drawn as circles, if they are commutative."""

Arguments = dict[str, Keys]
"""The values of each argument of an application; repetitions may have different ones."""


def expand(plan: Plan, body: Body, table: Table, fold: bool) -> None:
    """Add the nodes of a model's body to a plan."""
    assert body.module is not None
    Expansion(plan, body.module, table, fold).model(body)
    if plan.nodes[0].params != plan.total:
        counts = f"expected {plan.total:,} parameters in the picture, found {plan.nodes[0].params:,}"
        raise internal_error(counts)


class Expansion:
    """Turns applications into nodes, in program order."""

    def __init__(self, plan: Plan, module: Module, table: Table, fold: bool) -> None:
        self.plan = plan
        self.fold = fold
        self.sheet = GraphBuilder(module)
        self.labels = labels_by_address(module)
        self.holdings = Holdings(plan, table, self.sheet.counted, fold)
        self.applications: dict[str, int] = {}
        self.works = WorkSum()
        self.bytes = ByteSum(self.works.origins)

    def model(self, body: Body) -> None:
        """Add the root and everything in it."""
        root = Node(0, None, "root", body.type)
        self.plan.nodes.append(root)
        root.title = root.name = self.plan.model
        scope = Scope(self.plan, root, [""], "")
        for slot, (name, type) in enumerate(body.inputs):
            node = self._terminal(scope, "input", name, type)
            scope.slots[slot] = ((node.id, 0),)
        self._walk(scope, body, (), [slot for _, slot in body.outputs])
        for name, slot in body.named_outputs().items():
            node = self._terminal(scope, "output", name, body.types[slot])
            node.inputs = [_port("", body.types[slot])]
            for key in scope.slots[slot]:
                scope.use(key, node.id, 0)
        self.holdings.add_unused(scope)
        work = self.works.body(body, ())
        root.macs, root.elementwise, root.bytes = work.macs, work.elementwise, self.bytes.body(body, ())
        self._finish(scope)
        arrange(self.plan, root)
        self.plan.ties = self.holdings.ties()

    def _terminal(self, scope: Scope, kind: str, name: str, type: Type) -> Node:
        node = scope.child(kind, type.dtype)
        node.form, node.title, node.name = "terminal", name, f"{kind}:{name}"
        node.label = self.sheet.module.entry_labels.get(name, "")
        node.shape, node.dtype = _shape(type), type.dtype
        return node

    def _finish(self, scope: Scope) -> None:
        """Sum up the children of a node, and arrange them."""
        node, children = scope.node, [self.plan.nodes[id] for id in scope.contents.children]
        node.params = sum([child.params for child in children])
        node.frozen = sum([child.frozen for child in children])
        self.holdings.add_up(node, children)
        node.contents = scope.contents
        label_children(self.plan, children)

    def _walk(self, scope: Scope, body: Body, inputs: InputOrigins, returned: Sequence[object]) -> None:
        """Add the calls of a body, of which the slots `returned` leave the node."""
        scope.origins = self.works.origins.slots(body, inputs)
        operands = [slot for call in body.calls for _, slot in call.inputs]
        scope.read = {slot for slot in [*operands, *returned] if isinstance(slot, int)}
        tensors = {slot: name for name, slot in body.weights}
        self.holdings.begin(scope, body, tensors)
        calls, done = body.calls, 0
        found: Sequence[CallRun] = ()
        if self.fold:
            amounts = [self._amounts(call, body, scope) for call in calls]
            finder = RunFinder(calls, self.sheet.parameter_uses(body, scope.prefixes[0]), amounts)

            def is_single(run: CallRun) -> bool:
                """Whether an iteration of a run within a period computes one call."""
                return sum(passed_through_slot(call) is None for call in calls[run.start : run.start + run.period]) == 1

            found = [finder.find_inner(run, is_single) if run.period > 1 else run for run in finder.find()]
        for run in found:
            for call in calls[done : run.start]:
                self._single(scope, body, call)
            self._run(scope, body, run)
            done = run.start + run.period * run.iterations
        for call in calls[done:]:
            self._single(scope, body, call)

    def _amounts(self, call: Call, body: Body, scope: Scope) -> tuple[Quantity, Quantity, Quantity]:
        """Return the multiply-accumulates, elementwise operations and bytes of a call."""
        macs, elementwise = self.works.call(call, body, scope.origins)
        return macs, elementwise, self.bytes.call(call, scope.origins)

    def _single(self, scope: Scope, body: Body, call: Call) -> None:
        unchanged = passed_through_slot(call)
        if unchanged is not None:
            scope.slots[call.first] = self._keys(scope, unchanged)
            return
        arguments = {name: self._keys(scope, slot) for name, slot in call.inputs if isinstance(slot, int)}
        repeated = self._repeated(scope, call, arguments)
        known = scope.merged.get(repeated) if repeated is not None else None
        if known is not None:
            known.times += 1
            _set_outputs(scope, call, known, _read_outputs(scope, [call]))
            return
        node = scope.child(call.kind, call.type)
        outputs = _read_outputs(scope, [call])
        _set_outputs(scope, call, node, outputs)
        self._fill(scope, body, call, node, arguments, [call.address], call.address, outputs)
        if repeated is not None:
            scope.merged[repeated] = node
            scope.repeated.update((node.id, i) for i in range(node.outputs))

    def _repeated(self, scope: Scope, call: Call, arguments: Arguments) -> object:
        """Return a key shared by operations that treat several tensors alike; None for other calls."""
        if call.address or not any(key in scope.repeated for keys in arguments.values() for key in keys):
            return None
        constants = [(name, repr(value.value)) for name, value in call.inputs if isinstance(value, Constant)]
        return (call.type, call.body, repr(call.attributes), tuple(arguments.items()), tuple(constants))

    def _run(self, scope: Scope, body: Body, run: CallRun) -> None:
        """Add the applications of one iteration of a run; with several, inside a node for the period."""
        calls, end = body.calls, run.start + run.period * run.iterations
        member = _members(calls, run)
        members = [*dict.fromkeys(member.values())]
        made_inside = {slot for call in calls[run.start : end] for slot in _slots(call)}
        for call in calls[run.start : end]:  # tensors that are read come first
            for _, slot in call.inputs:
                if isinstance(slot, int) and slot not in made_inside:
                    self._keys(scope, slot)
        inner, frame = scope, None
        if len(members) > 1:
            frame = scope.child("period", "")
            frame.times = run.iterations
            inner = Scope(self.plan, frame, scope.prefixes, scope.shown)
            inner.counts, inner.origins, inner.read = scope.counts, scope.origins, scope.read
        nodes = {i: inner.child(calls[run.start + i].kind, calls[run.start + i].type) for i in members}
        outputs = {i: _read_outputs(scope, [calls[j] for j in run.same_calls(i)]) for i in members}
        entered: dict[Key, int] = {}
        made: dict[int, tuple[int, int | None]] = {}  # the iteration and the member that fill a slot of the run

        def keys(slot: int, iteration: int, member: int | None) -> Keys:
            if slot in made:  # not from an earlier iteration of the run, or of one within its period
                is_earlier = made[slot][0] != iteration or (member is not None and made[slot][1] == member)
                return () if is_earlier else inner.slots[slot]
            outer = self._keys(scope, slot)
            return tuple([(None, entered.setdefault(key, len(entered))) for key in outer]) if frame else outer

        arguments: dict[int, Arguments] = {i: {} for i in members}
        for iteration in range(run.iterations):
            for i in range(run.period):
                call = calls[run.start + iteration * run.period + i]
                unchanged = passed_through_slot(call)
                if unchanged is not None:
                    inner.slots[call.first] = keys(unchanged, iteration, None) or inner.slots.get(unchanged, ())
                    made[call.first] = iteration, made.get(unchanged, (iteration, None))[1]
                    continue
                own = member[i]
                for name, slot in call.inputs:
                    if isinstance(slot, int):
                        known = arguments[own].get(name, ())
                        new = [key for key in keys(slot, iteration, own) if key not in known]
                        arguments[own][name] = (*known, *new)
                _set_outputs(inner, call, nodes[own], outputs[own])
                for slot in _slots(call):
                    made[slot] = iteration, own
        if frame is not None:
            inner.weighs = {(None, own) for key, own in entered.items() if key in scope.weighs}
        for i in members:
            each, within = run.same_calls(i), run.inner_at(i)
            addresses = list(dict.fromkeys(calls[j].address for j in each))
            nodes[i].times = run.iterations if frame is None else within.iterations if within is not None else 1
            self._fill(inner, body, calls[each[0]], nodes[i], arguments[i], addresses, run.addresses[i], outputs[i])
        if frame is not None:
            self._close(scope, inner, body, run, [slot for slot in made if slot in inner.slots], entered)

    def _close(
        self, scope: Scope, inner: Scope, body: Body, run: CallRun, made: list[int], entered: dict[Key, int]
    ) -> None:
        """Connect the node of a period to the values before and after it."""
        frame, members = inner.node, [self.plan.nodes[id] for id in inner.contents.children]
        end = run.start + run.period * run.iterations
        later = {slot for call in body.calls[end:] for _, slot in call.inputs} | {slot for _, slot in body.outputs}
        leaving: dict[Key, int] = {}
        for slot in made:
            if slot in later:
                for key in inner.slots[slot]:
                    if key not in leaving:
                        inner.use(key, None, len(leaving))
                        if key in inner.weighs:
                            scope.weighs.add((frame.id, len(leaving)))
                    leaving.setdefault(key, len(leaving))
                scope.slots[slot] = tuple([(frame.id, leaving[key]) for key in inner.slots[slot]])
        frame.outputs = len(leaving)
        frame.type = f"period of {sum([member.times for member in members])}"
        numbers = [call.address for call in body.calls[run.start : end] if call.address]
        frame.title = frame.address = _range_of(numbers)
        frame.name = f"{scope.shown}{frame.title}#period"
        frame.macs, frame.elementwise, frame.bytes = (
            sum([member.times * member.macs for member in members]),
            sum([member.times * member.elementwise for member in members]),
            sum([member.times * member.bytes for member in members]),
        )
        frame.shape, frame.dtype, frame.source = members[-1].shape, members[-1].dtype, members[0].source
        frame.inputs = [self._type_of(inner, own) for own in entered.values()]
        self._finish(inner)
        frame.role = self.holdings.common_role(frame)
        set_sides(self.plan, frame, _weights(scope, entered), _nearness(entered))
        arrange(self.plan, frame)
        for key, own in entered.items():
            scope.use(key, frame.id, own)

    def _type_of(self, scope: Scope, own: int) -> Port:
        """Return the port of a member that takes an input of the period."""
        for value in scope.contents.values:
            if value.source is None and value.output == own:
                use = next(use for use in value.uses if use.to is not None)
                assert use.to is not None
                return self.plan.nodes[use.to].inputs[use.port]
        raise AssertionError("an input of a period is used")

    def _keys(self, scope: Scope, slot: int) -> Keys:
        if slot not in scope.slots:
            scope.slots[slot] = ((self.holdings.tensor(scope, slot), 0),)
            scope.weighs.update(scope.slots[slot])
        return scope.slots[slot]

    def _fill(
        self,
        scope: Scope,
        body: Body,
        call: Call,
        node: Node,
        arguments: Arguments,
        addresses: list[str],
        shown: str,
        outputs: Sequence[int],
    ) -> None:
        """Set the attributes of a node, connect it, and add what is inside; `outputs` are those that are read."""
        plan = self.plan
        entering: dict[Key, int] = {}
        for keys in arguments.values():
            for key in keys:
                entering.setdefault(key, len(entering))
        types = {name: body.types[slot] for name, slot in call.inputs if isinstance(slot, int)}
        for key in entering:
            names = [name for name, keys in arguments.items() if key in keys]
            node.inputs.append(_port(", ".join(names if len(names) < 4 else [*names[:2], "..."]), types[names[0]]))
        node.macs, node.elementwise, node.bytes = self._amounts(call, body, scope)
        node.source = call.span.location
        results = [type for type in call.outputs if type is not None]
        if results:
            result = results[outputs[0]]
            node.shape, node.dtype = _shape(result), result.dtype
        node.constants = {name: to_plain(c.value) for name, c in call.inputs if isinstance(c, Constant)}
        node.hyperparameters = {name: to_plain(value) for name, value in static_values(call).items()}
        prefixes = scope.prefixes
        if call.address:
            prefixes = [f"{prefix}{address}." for address in addresses for prefix in scope.prefixes]
            node.addresses = [prefix[:-1] for prefix in prefixes]
            self._name_module(scope, call, node, shown)
        else:
            _name_operation(scope, call, node)
        node.same = node.times != 1 and len(addresses) == 1 and bool(call.address)
        node.copies = len(prefixes)
        weights = _weights(scope, entering)
        if call.kind == "layer":
            self.holdings.layer(node, [prefix[:-1] for prefix in prefixes])
        inner = self._inside(scope, call, node, arguments, entering, weights, prefixes, shown, outputs)
        if call.kind == "block":
            node.role = self.holdings.common_role(node)
            node.modules = self.holdings.modules_in(prefixes[0][:-1])
        if any(weights) or node.params or node.tensors or (inner is not None and inner.weighs - set(_own(inner))):
            scope.weighs.update((node.id, i) for i in range(node.outputs))
        set_sides(plan, node, weights, _nearness(entering))
        if node.contents is not None:
            arrange(plan, node)
        for key, port in entering.items():
            scope.use(key, node.id, port)

    def _name_module(self, scope: Scope, call: Call, node: Node, shown: str) -> None:
        """Name the node of a module by its address, and by a number if it is not the first application."""
        assert call.body is not None and call.body.module is not None
        node.title, node.address, node.form = shown, scope.shown + shown, "box"
        node.hyperparameters = {n: to_plain(v) for n, v in static_values(call.body.module).items()}
        node.labels = {n: label for n, label in call.body.module.entry_labels.items() if n in node.hyperparameters}
        labels = {self.labels.get(address, "") for address in node.addresses or ()} if self.labels else set[str]()
        node.label = labels.pop() if len(labels) == 1 else ""
        count = self.applications[node.address] = self.applications.get(node.address, 0) + 1
        node.name = node.address if count == 1 else f"{node.address}@{count}"

    def _inside(
        self,
        scope: Scope,
        call: Call,
        node: Node,
        arguments: Arguments,
        entering: dict[Key, int],
        weights: list[bool],
        prefixes: list[str],
        shown: str,
        read: Sequence[int],
    ) -> Scope | None:
        """Add the contents of an application of a definition, unless nothing is computed there."""
        if call.body is None:
            return None
        owns = call.body.module is not None
        inner = Scope(self.plan, node, prefixes, f"{scope.shown}{shown}." if owns else scope.shown)
        inner.slots = {
            i: tuple([(None, entering[key]) for key in arguments.get(name, ())])
            for i, (name, _) in enumerate(call.body.inputs)
        }
        inner.weighs = {(None, port) for port, weighs in enumerate(weights) if weighs}
        if call.body.loop is not None:
            node.rounds = call.body.loop.iterations
        results = [slot for _, slot in call.body.outputs if isinstance(slot, int)]
        returned = [results[output] for output in read]
        self._walk(inner, call.body, self.works.origins.inputs(call, scope.origins), returned)
        if not inner.contents.children:
            return None
        for number, slot in enumerate(returned):
            for key in self._keys(inner, slot):
                inner.use(key, None, number)
        if call.kind == "layer":
            self.holdings.add_unread(inner)
        params, frozen = node.params, node.frozen
        self._finish(inner)
        if call.kind == "layer" and (params, frozen) != (node.params, node.frozen):
            raise internal_error(f"the tensors of {node.name} do not add up")
        return inner


def _name_operation(scope: Scope, call: Call, node: Node) -> None:
    """Name the node of an operation by its number among those of its kind."""
    number = scope.counts.get(call.type, 0)
    scope.counts[call.type] = number + 1
    node.name = f"{scope.node.name if scope.node.parent is not None else ''}#{call.type}.{number}"
    node.title, node.form = call.type, "pill"
    op = OPS.get(call.type) if call.kind == "op" else None
    if op is None:
        return
    if node.constants:
        node.title = _format_constants(op, node.constants)
    elif op.commutative and op.symbol in _SIGNS:
        node.title, node.form = _SIGNS[op.symbol], "circle"


def _format_constants(op: Op, constants: Mapping[str, object]) -> str:
    """Return an operation with its inputs that are numbers: `+ 1`, `1 - x`, `max(0)`, `where(b = 0)`."""
    texts = {name: _number(value) for name, value in constants.items()}
    names = [input.name for input in op.inputs]
    if op.symbol and len(names) == 2 and len(texts) == 1:
        sign = _SIGNS.get(op.symbol, op.symbol)
        ((name, text),) = texts.items()
        return f"{text} {sign} x" if name == names[0] and not op.commutative else f"{sign} {text}"
    if op.commutative and len(texts) == 1:
        return f"{op.name}({next(iter(texts.values()))})"
    return f"{op.name}({', '.join([f'{name} = {text}' for name, text in texts.items()])})"


def _number(value: object) -> str:
    """Format a number with up to six digits."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _own(scope: Scope) -> list[Key]:
    return [(None, port) for port in range(len(scope.node.inputs))]


def _members(calls: Sequence[Call], run: CallRun) -> dict[int, int]:
    """Return, for each position of a period at which something is computed, the position that is drawn for it."""
    member: dict[int, int] = {}
    for position in range(run.period):
        if passed_through_slot(calls[run.start + position]) is None:
            inner = next((x for x in run.inner if 0 <= position - x.start < x.period * x.iterations), None)
            first = position if inner is None else inner.start + (position - inner.start) % inner.period
            member[position] = first
    return member


def _read_outputs(scope: Scope, calls: Sequence[Call]) -> list[int]:
    """Return the outputs that are read of any of some equal calls; of calls without an address, all."""
    every = [*range(len(_slots(calls[0])))]
    read = [i for i in every if not calls[0].address or any(call.first + i in scope.read for call in calls)]
    return read or every


def _set_outputs(scope: Scope, call: Call, node: Node, outputs: Sequence[int]) -> None:
    """Set the slots of those results of a call that are read to outputs of its node."""
    for number, output in enumerate(outputs):
        scope.slots[call.first + output] = ((node.id, number),)
    node.outputs = len(outputs)


def _slots(call: Call) -> range:
    """Return the slots of the results of a call."""
    return range(call.first, call.first + sum(1 for type in call.outputs if type is not None))


def _weights(scope: Scope, entering: dict[Key, int]) -> list[bool]:
    return [key in scope.weighs for key in entering]


def _nearness(entering: dict[Key, int]) -> list[int]:
    """Return how near the producer of each entering value is: later children are nearer than earlier ones."""
    return [-1 if source is None else source for source, _ in entering]


def _range_of(addresses: Sequence[str]) -> str:
    """Return a common address for those of a period: `layers.1-21`, or the first if they do not differ in one index."""
    parts = [address.split(".") for address in addresses]
    for place in range(min(map(len, parts))):
        column = [part[place] for part in parts]
        if len(set(column)) > 1:
            if all(text.isdigit() for text in column):
                numbers = sorted({int(text) for text in column})
                return ".".join([*parts[0][:place], f"{numbers[0]}\N{EN DASH}{numbers[-1]}"])
            break
    return addresses[0].replace(ANY_INDEX, "*")


def _shape(type: Type) -> tuple[str | int, ...]:
    return tuple([size if isinstance(size, int) else str(size) for size in type.shape])


def _port(argument: str, type: Type) -> Port:
    return Port(argument, "top", _shape(type), type.dtype)
