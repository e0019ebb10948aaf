"""Build hook: adds the parser tables to the package, so that lark is needed at build time only."""

from __future__ import annotations

import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParserTablesHook(BuildHookInterface[Any]):
    """Writes the tables beside the parser, for wheels and for editable installations."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        try:
            from archspec.language.syntax.tables import load_tables, write_tables
        finally:
            sys.path.remove(self.root)
        write_tables(load_tables())
