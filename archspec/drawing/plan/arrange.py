"""The arrangement of the contents of a node: columns beside the stream, rows, the order in them, and ways of values."""

from __future__ import annotations

from archspec.drawing.plan.order import order_rows
from archspec.drawing.plan.plan import Contents, Node, PassThrough, Plan, Port, Side, Use, Value


def arrange(plan: Plan, node: Node) -> None:
    """Set the rows and columns of a node's contents, and the ways of its values."""
    assert node.contents is not None
    _Arrangement(plan, node, node.contents).run()


class _Arrangement:
    """An arrangement under construction. `sides` are the children in columns, `ranks` the rows of the others."""

    def __init__(self, plan: Plan, node: Node, contents: Contents) -> None:
        self.plan = plan
        self.node = node
        self.contents = contents
        self.sides: set[int] = set()
        self.ranks: dict[int, int] = {}

    def run(self) -> None:
        contents = self.contents
        self._put_beside()
        self._make_columns()
        beside = {id for child in contents.children for id in self.plan.nodes[child].beside or ()}
        rows = [id for id in contents.children if id not in self.sides and id not in beside]
        self._choose_ways()
        self._rank(rows)
        contents.rows = [[] for _ in range(max(self.ranks.values()) + 1)]
        for id in rows:
            contents.rows[self.ranks[id]].append(id)
        self._pass_and_skip(rows)
        order_rows(self.plan, self.node)
        self._choose_out()

    # Beside the rows

    def _put_beside(self) -> None:
        """Put what only one operation uses beside it: up to two tensors, or an operation without inputs.

        The other inputs enter at the top.
        """
        taken: dict[int, dict[int, Side]] = {}
        for value in self.contents.values:
            if value.source is None or len(value.uses) != 1 or value.uses[0].to is None:
                continue
            source, target = self.plan.nodes[value.source], self.plan.nodes[value.uses[0].to]
            port = value.uses[0].port
            is_tensor = source.kind in ("param", "buffer")
            is_made = source.form == "pill" and not source.inputs and target.inputs[port].side == "right"
            if target.form != "box" and ((is_tensor and target.kind == "op") or is_made):
                target.beside = target.beside or []
                if len(target.beside) < (2 if is_tensor else 1):
                    target.beside.append(source.id)
                    side: Side = "right" if len(target.beside) == 1 else "left"
                    value.uses = [value.uses[0]._replace(way="beside")]
                    taken.setdefault(target.id, {})[port] = side

        for id, sides in taken.items():
            node = self.plan.nodes[id]
            node.inputs = [port._replace(side=sides.get(own, "top")) for own, port in enumerate(node.inputs)]
            tops = [own for own in range(len(node.inputs)) if own not in sides]
            node.main = tops[0] if len(tops) == 1 else None

    def _make_columns(self) -> None:
        """Move computations without parameters, whose results enter from the right only, to columns."""
        contents = self.contents
        uses: dict[int, list[Use]] = {id: [] for id in contents.children}
        sources: dict[int, set[int | None]] = {id: set() for id in contents.children}
        for value in contents.values:
            if value.source is not None:
                uses[value.source] += value.uses
            for use in value.uses:
                if use.to is not None:
                    sources[use.to].add(value.source)
        found: set[int] = set()
        for id in reversed(contents.children):
            node = self.plan.nodes[id]
            is_plain = node.kind in ("op", "fn", "input", "buffer")
            if is_plain and uses[id] and all(self._is_aside(use, found) for use in uses[id]):
                found.add(id)
        changed = True
        while changed:
            kept = {id for id in found if all(source is None or source in found for source in sources[id])}
            kept = {id for id in kept if all(self._is_aside(use, kept) for use in uses[id])}
            changed, found = kept != found, kept
        self.sides = found
        components = self._components(found)
        for component in components:
            contents.columns.append(component[0] if len(component) == 1 else self._group(component))
        self.sides = found | set(contents.columns)

    def _is_aside(self, use: Use, aside: set[int]) -> bool:
        if use.to is None or use.way == "beside":
            return False
        return use.to in aside or self.plan.nodes[use.to].inputs[use.port].side == "right"

    def _components(self, ids: set[int]) -> list[list[int]]:
        """Return the connected components of some children, each in program order."""
        group = {id: id for id in ids}

        def root(id: int) -> int:
            while group[id] != id:
                id = group[id]
            return id

        for value in self.contents.values:
            if value.source in ids:
                for use in value.uses:
                    if use.to in ids:
                        group[root(use.to)] = root(value.source)
        found: dict[int, list[int]] = {}
        for id in self.contents.children:
            if id in ids:
                found.setdefault(root(id), []).append(id)
        return [*found.values()]

    def _group(self, members: list[int]) -> int:
        """Move children into a new child of their own, without a frame."""
        plan, contents = self.plan, self.contents
        group = Node(len(plan.nodes), self.node.id, "group", "")
        plan.nodes.append(group)
        group.form, group.contents, group.name = "group", Contents(), f"{self.node.name}#group.{members[0]}"
        group.outputs = 0
        inner, kept = group.contents, set(members)
        values: list[Value] = []
        inner.children = members
        contents.children = [id for id in contents.children if id not in kept]
        contents.children.insert(0, group.id)
        for id in members:
            plan.nodes[id].parent = group.id
        for value in contents.values:
            inside = [use for use in value.uses if use.to in kept]
            outside = [use for use in value.uses if use.to not in kept]
            moved = Value(value.source, value.output)
            moved.uses = inside
            if value.source not in kept:
                if inside:
                    moved.source, moved.output = None, len(group.inputs)
                    first = inside[0]
                    assert first.to is not None
                    group.inputs.append(plan.nodes[first.to].inputs[first.port]._replace(side="top"))
                    outside.append(Use(group.id, moved.output, "down"))
            elif outside:
                moved.uses = [*inside, Use(None, group.outputs, "down")]
                value.source, value.output = group.id, group.outputs
                group.outputs += 1
            if moved.uses:
                inner.values.append(moved)
            value.uses = outside
            if outside:
                values.append(value)
        contents.values = values
        arrange(plan, group)
        return group.id

    def _choose_ways(self) -> None:
        """Set the ways of values that do not go from row to row."""
        for value in self.contents.values:
            for i, use in enumerate(value.uses):
                if use.to is None or use.way == "beside":
                    continue
                side = self._port(use).side
                if use.to in self.sides:
                    value.uses[i] = use._replace(way="column")
                elif side != "top":
                    value.uses[i] = use._replace(way=side)

    def _port(self, use: Use) -> Port:
        assert use.to is not None
        return self.plan.nodes[use.to].inputs[use.port]

    # Rows

    def _rank(self, rows: list[int]) -> None:
        """Set the row of each child: below all that it uses, and what has no way in right above its use."""
        before: dict[int, list[tuple[int, int]]] = {id: [] for id in rows}
        after: dict[int, list[tuple[int, int]]] = {id: [] for id in rows}
        entered: set[int] = set()
        for value in self.contents.values:
            for use in value.uses:
                if use.to not in before:
                    continue
                if value.source is None:
                    entered.add(use.to)
                elif value.source in before:
                    step = 0 if use.way == "left" and self._are_blocks(value.source, use.to) else 1
                    before[use.to].append((value.source, step))
                    after[value.source].append((use.to, step))
        for id in rows:
            self.ranks[id] = max([self.ranks[source] + step for source, step in before[id]], default=0)
            if before[id] and any(source in entered for source, _ in before[id]):
                entered.add(id)
        for id in reversed(rows):
            free = id not in entered if self.node.kind != "root" else not before[id] or self._is_free(id, before)
            if free and after[id]:
                lowest = min([self.ranks[target] - step for target, step in after[id]])
                self.ranks[id] = max(self.ranks[id], lowest)

    def _is_free(self, id: int, before: dict[int, list[tuple[int, int]]]) -> bool:
        """Whether a child is only reached from children that may move as well, without parameters."""
        return self.plan.nodes[id].kind in ("op", "fn") and len(before[id]) <= 1

    def _are_blocks(self, source: int, target: int) -> bool:
        return all(self.plan.nodes[id].kind == "block" for id in (source, target))

    def _pass_and_skip(self, rows: list[int]) -> None:
        """Tell skips, which have a longer way beside them, from values that pass straight through rows."""
        contents = self.contents
        after = self._ways_down(rows)
        height = len(contents.rows)
        for index, value in enumerate(contents.values):
            start = -1 if value.source is None else self.ranks.get(value.source)
            if start is None:
                continue
            passed = 0
            for i, use in enumerate(value.uses):
                if use.way != "down":
                    continue
                end = height if use.to is None else self.ranks[use.to]
                targets = [other.to for other in value.uses if other.to != use.to and other.way == "down"]
                others = [target for target in targets if target is not None]
                if use.to is not None and self._is_reached(use.to, others, after):
                    value.uses[i] = use._replace(way="skip")
                else:
                    passed = max(passed, end - start - 1)
            for row in range(start + 1, start + 1 + passed):
                contents.rows[row].append(PassThrough(index))

    def _ways_down(self, rows: list[int]) -> dict[int, set[int]]:
        """Return the children that each child feeds from row to row."""
        after: dict[int, set[int]] = {id: set() for id in rows}
        for value in self.contents.values:
            if value.source in after:
                after[value.source].update([use.to for use in value.uses if use.way == "down" and use.to in after])
        return after

    def _is_reached(self, target: int, starts: list[int], after: dict[int, set[int]]) -> bool:
        """Whether a child is reached from one of others, from row to row."""
        waiting, seen = [*starts], set(starts)
        while waiting:
            for id in after.get(waiting.pop(), ()):
                if id == target:
                    return True
                if id not in seen and self.ranks[id] < self.ranks[target]:
                    seen.add(id)
                    waiting.append(id)
        return False

    def _choose_out(self) -> None:
        """Set the output that leaves on the axis: the one computed last."""
        outputs = [
            (self.ranks[value.source], -use.port)
            for value in self.contents.values
            for use in value.uses
            if value.source is not None and use.to is None
        ]
        if outputs:
            self.contents.out = -max(outputs)[1]
