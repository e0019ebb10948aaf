"""Whether a model chooses among parts of its parameters, such as experts."""

from __future__ import annotations

from archspec.ir import Body
from archspec.ops import OPS


def has_choices(body: Body) -> bool:
    """Whether indices are chosen anywhere in a body: without that, all parameters are used for each token."""
    seen = {body}
    pending = [body]
    for current in pending:
        for call in current.calls:
            if call.body is None:
                if OPS[call.type].chooses is not None:
                    return True
            elif call.body not in seen:
                seen.add(call.body)
                pending.append(call.body)
    return False
