"""The table of the tensors of a compiled module."""

from __future__ import annotations

from archspec.core.addresses import prefixes, relative
from archspec.core.record import Record, from_values
from archspec.ir.module import Module, ModuleTensor, is_frozen
from archspec.ir.table import Buffer, HyperparameterValues, ModuleRow, Params, Repeat, Table, Tensor, Tensors


def build_table(
    name: str, module: Module, hyperparameters: HyperparameterValues, overrides: HyperparameterValues
) -> Table:
    """Return the table of a module that is a whole model."""
    walk = _TableBuilder(module)
    walk.visit(module, "", None, False)
    params = Params(module.total, module.total - module.frozen, module.frozen)
    ties = {buffer.name: module.aliases[buffer.name] for buffer in walk.buffers if buffer.name in module.aliases}
    return Table(
        name,
        hyperparameters,
        overrides,
        params,
        Tensors(walk.tensors, walk.repeats),
        tuple(walk.buffers),
        tuple(walk.modules),
        ties,
    )


class _RowRange(Record):
    """The rows of a module among all tensors, and in the lists of buffers and modules."""

    address: str
    tensors: slice
    buffers: slice
    modules: slice


class _TableBuilder:
    """Lists the modules, buffers and distinct tensors of a model; `number` counts all tensors."""

    def __init__(self, root: Module) -> None:
        self.aliases = root.aliases
        self.trainable = {name: not is_frozen(root, name) for name in set(root.aliases.values())}
        self.tensors: list[Tensor] = []
        self.number = 0
        self.buffers: list[Buffer] = []
        self.modules: list[ModuleRow] = []
        self.repeats: list[Repeat] = []
        self._with_ties = {outer for name in root.aliases for outer in prefixes(name)}
        self._made: dict[object, _RowRange] = {}

    def visit(
        self, module: Module, address: str, role: str | None, frozen: bool, outer: dict[str, str] | None = None
    ) -> None:
        """Visit a module at an address.

        `role` is that of the enclosing definition; `outer` are the roles that enclosing definitions give to addresses
        in this module; the module's own roles take precedence.
        """
        self.modules.append(ModuleRow(address, module.type, module.kind))
        roles = dict(module.roles)
        own_role = roles.pop("", None)
        prefix = f"{address}." if address else ""
        below = _member_roles(module, outer or {}, roles) if outer or roles else {}
        for own, member in module.members.items():
            nearest = _closest_role(own, roles) or own_role or _closest_role(own, outer) or role
            held = frozen or member.frozen
            target = member.target
            if isinstance(target, Module):
                self._visit_once(target, prefix + own, nearest, held, below.get(own))
            elif target.kind == "buffer":
                self.buffers.append(Buffer(prefix + own, target.shape))
            elif target.kind == "param":
                self._tensor(prefix + own, target, nearest, held, address, module.type)

    def _visit_once(
        self, module: Module, address: str, role: str | None, frozen: bool, outer: dict[str, str] | None
    ) -> None:
        """Visit a module, or copy what was found at another address, unless some of its tensors are tied here."""
        key = (module, role, frozen, *(outer or {}).items())
        tensors, buffers, modules = self.number, len(self.buffers), len(self.modules)
        if address in self._with_ties:
            self.visit(module, address, role, frozen, outer)
        elif key not in self._made:
            self.visit(module, address, role, frozen, outer)
            ends = self.number, len(self.buffers), len(self.modules)
            self._made[key] = _RowRange(
                address, slice(tensors, ends[0]), slice(buffers, ends[1]), slice(modules, ends[2])
            )
        else:
            of = self._made[key]
            cut = len(of.address)
            self.number += of.tensors.stop - of.tensors.start
            self.buffers += [Buffer(address + name[cut:], shape) for name, shape in self.buffers[of.buffers]]
            self.modules += [
                from_values(ModuleRow, (address + name[cut:], type, kind))
                for name, type, kind in self.modules[of.modules]
            ]
            if self.number > tensors:
                self.repeats.append(Repeat(address, of.address, tensors, self.number, of.tensors.start))

    def _tensor(self, name: str, weight: ModuleTensor, role: str | None, frozen: bool, layer: str, type: str) -> None:
        tied_to = self.aliases.get(name)
        trainable = self.trainable[tied_to] if tied_to is not None else not frozen
        params = weight.size if tied_to is None else 0
        self.number += 1
        self.tensors.append(Tensor(name, weight.shape, params, weight.size, trainable, tied_to, role, layer, type))


def _closest_role(address: str, roles: dict[str, str] | None) -> str | None:
    """Return the role of an address, or of its closest enclosing address with one."""
    if not roles:
        return None
    role = None
    for outer in prefixes(address):
        role = roles.get(outer, role)
    return role


def _member_roles(module: Module, *roles: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return, for each member, the roles of addresses inside it, relative to it; later ones take precedence."""
    found: dict[str, dict[str, str]] = {}
    for given in roles:
        for name, role in given.items():
            for own in prefixes(name):
                if own in module.members and own != name:
                    found.setdefault(own, {})[relative(name, own)] = role
    return found
