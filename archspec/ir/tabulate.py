"""The table of the tensors of a compiled module."""

from __future__ import annotations

from collections.abc import Mapping

from archspec.core.addresses import prefixes, relative
from archspec.core.record import Record, from_values
from archspec.ir.module import Module, ModuleTensor, is_frozen
from archspec.ir.table import Buffer, HyperparameterValues, ModuleRow, Params, Repeat, Table, Tensor, Tensors


def build_table(
    name: str,
    module: Module,
    hyperparameters: HyperparameterValues,
    overrides: HyperparameterValues,
    default_roles: Mapping[str, str] | None = None,
) -> Table:
    """Return the table of the module of a model.

    `default_roles` are roles of tensors by name, for those to which no definition gives one.
    """
    builder = _TableBuilder(module)
    builder.visit(module, "", None, False, None, dict(default_roles or {}))
    params = Params(module.total, module.total - module.frozen, module.frozen)
    ties = {buffer.name: module.aliases[buffer.name] for buffer in builder.buffers if buffer.name in module.aliases}
    return Table(
        name,
        hyperparameters,
        overrides,
        params,
        Tensors(builder.tensors, builder.repeats),
        tuple(builder.buffers),
        tuple(builder.modules),
        ties,
    )


class _RowRange(Record):
    """The rows of a module among all tensors, and in the lists of buffers and modules."""

    address: str
    tensors: slice
    buffers: slice
    modules: slice


class _TableBuilder:
    """Lists the modules, buffers and distinct tensors of a model; `number` is the number of all tensors."""

    def __init__(self, root: Module) -> None:
        self.aliases = root.aliases
        self.trainable = {name: not is_frozen(root, name) for name in set(root.aliases.values())}
        self.tensors: list[Tensor] = []
        self.number = 0
        self.buffers: list[Buffer] = []
        self.modules: list[ModuleRow] = []
        self.repeats: list[Repeat] = []
        self._tied_prefixes = {prefix for name in root.aliases for prefix in prefixes(name)}
        self._row_ranges: dict[object, _RowRange] = {}

    def visit(
        self,
        module: Module,
        address: str,
        role: str | None,
        frozen: bool,
        inherited_roles: dict[str, str] | None = None,
        default_roles: dict[str, str] | None = None,
    ) -> None:
        """Visit a module at an address.

        `role` is the role of the enclosing definition; `inherited_roles` are the roles that enclosing definitions give
        to addresses in this module. The module's own roles take precedence; `default_roles` are for tensors without
        a role.
        """
        self.modules.append(ModuleRow(address, module.type, module.kind))
        roles = dict(module.roles)
        own_role = roles.pop("", None)
        prefix = f"{address}." if address else ""
        roles_by_member = _member_roles(module, inherited_roles or {}, roles) if inherited_roles or roles else {}
        defaults_by_member = _member_roles(module, default_roles) if default_roles else {}
        for member_address, member in module.members.items():
            closest_role = (
                _closest_role(member_address, roles)
                or own_role
                or _closest_role(member_address, inherited_roles)
                or role
            )
            member_frozen = frozen or member.frozen
            target = member.target
            if isinstance(target, Module):
                self._visit_once(
                    target,
                    prefix + member_address,
                    closest_role,
                    member_frozen,
                    roles_by_member.get(member_address),
                    defaults_by_member.get(member_address),
                )
            elif target.kind == "buffer":
                self.buffers.append(Buffer(prefix + member_address, target.shape))
            elif target.kind == "param":
                tensor_role = closest_role or (default_roles or {}).get(member_address)
                self._add_tensor(prefix + member_address, target, tensor_role, member_frozen, address, module.type)

    def _visit_once(
        self,
        module: Module,
        address: str,
        role: str | None,
        frozen: bool,
        inherited_roles: dict[str, str] | None,
        default_roles: dict[str, str] | None,
    ) -> None:
        """Visit a module, or copy its rows from a different address, unless some of its tensors are tied here."""
        key = (module, role, frozen, *(inherited_roles or {}).items(), *(default_roles or {}).items())
        tensors, buffers, modules = self.number, len(self.buffers), len(self.modules)
        if address in self._tied_prefixes:
            self.visit(module, address, role, frozen, inherited_roles, default_roles)
        elif key not in self._row_ranges:
            self.visit(module, address, role, frozen, inherited_roles, default_roles)
            ends = self.number, len(self.buffers), len(self.modules)
            self._row_ranges[key] = _RowRange(
                address, slice(tensors, ends[0]), slice(buffers, ends[1]), slice(modules, ends[2])
            )
        else:
            original = self._row_ranges[key]
            length = len(original.address)
            self.number += original.tensors.stop - original.tensors.start
            self.buffers += [Buffer(address + name[length:], shape) for name, shape in self.buffers[original.buffers]]
            self.modules += [
                from_values(ModuleRow, (address + name[length:], type, kind))
                for name, type, kind in self.modules[original.modules]
            ]
            if self.number > tensors:
                self.repeats.append(Repeat(address, original.address, tensors, self.number, original.tensors.start))

    def _add_tensor(
        self, name: str, weight: ModuleTensor, role: str | None, frozen: bool, layer: str, type: str
    ) -> None:
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
    for prefix in prefixes(address):
        role = roles.get(prefix, role)
    return role


def _member_roles(module: Module, *roles: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the roles of addresses in each member, relative to the member; later `roles` take precedence."""
    roles_by_member: dict[str, dict[str, str]] = {}
    for roles_of_addresses in roles:
        for name, role in roles_of_addresses.items():
            for prefix in prefixes(name):
                if prefix in module.members and prefix != name:
                    roles_by_member.setdefault(prefix, {})[relative(name, prefix)] = role
    return roles_by_member
