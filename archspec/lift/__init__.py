"""Turn a PyTorch module into a readable spec."""

from archspec.lift.subject import Subject

__all__ = ["Subject"]
