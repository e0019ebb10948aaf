"""Storage of the weights of a quantized model."""

from __future__ import annotations

from archspec.core.record import Record


class Quantization(Record):
    """How the weights of a model are stored: the method, the fields of the configuration, the type of other weights."""

    method: str
    fields: dict[str, object]
    dtype: str

    @property
    def title(self) -> str:
        """The method, with the number of bits if it is stated."""
        bits = self.fields.get("bits")
        if self.method == "bitsandbytes":
            bits = 4 if self.fields.get("load_in_4bit") or self.fields.get("_load_in_4bit") else 8
        return f"{self.method}, {bits} bits" if isinstance(bits, int) else self.method

    @property
    def note(self) -> str:
        """What a count states of it."""
        return f"quantized ({self.title}): counted at its logical size"
