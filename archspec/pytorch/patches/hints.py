"""Masks that PyTorch looks at to find out whether they are causal, which a program for any mask cannot do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def disable_mask_detection() -> Generator[None]:
    """Let `nn.TransformerEncoder` and decoder use masks as they are: that one is causal is only a hint."""

    def given(mask: object, is_causal: bool | None = None, size: int | None = None) -> bool:
        return bool(is_causal)

    with patch("torch.nn.modules.transformer._detect_is_causal_mask", given, create=True):
        yield
