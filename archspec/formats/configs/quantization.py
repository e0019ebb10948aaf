"""The storage of quantized weights, as `quantization_config` describes it. It affects no count."""

from __future__ import annotations

from typing import cast

from archspec.core.diagnostics import Report
from archspec.formats.configs.read import Member
from archspec.ir.quantization import Quantization

FIELD = "quantization_config"


def quantization_of(members: dict[str, Member], report: Report) -> Quantization | None:
    """Return the quantization that a configuration describes; None if there is none, and after a diagnostic."""
    member = members.get(FIELD)
    fields = member.value.data() if member is not None else None
    if member is None or fields is None:
        return None
    if not isinstance(fields, dict):
        message = f"`{FIELD}` expects an object, found {member.value.written()}"
        report.error("wrong-kind", message, member.value.span)
        return None
    fields = cast("dict[str, object]", fields)
    names = [f"{before}load_in_{bits}bit" for before in ("", "_") for bits in (4, 8)]
    is_loaded = any(fields.get(name) for name in names)
    method = fields.get("quant_method", "bitsandbytes" if is_loaded else None)
    if method == "bitsandbytes" and not is_loaded:
        return None  # written by `transformers` for models that were loaded without it
    if not isinstance(method, str):
        message = f"missing `quant_method` in `{FIELD}`: {member.value.written()}"
        report.error("unsupported", message, member.value.span, help='specify it, as in `"quant_method": "gptq"`')
        return None
    stated = [members[name].value.plain for name in ("dtype", "torch_dtype") if name in members]
    dtype = next((each for each in stated if isinstance(each, str)), "float16")
    return Quantization(method, fields, dtype.removeprefix("torch."))
