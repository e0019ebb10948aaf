"""Definitions as classes and functions: `module_writer.py`; `known_modules.py` decides what is a module of `torch.nn`,
and `torch_layers.py` writes it.
"""
