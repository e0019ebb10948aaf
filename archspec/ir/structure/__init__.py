"""The parts of a model, read from its operations, independent of names and roles.

`read.py` finds the parts (`parts.py`): attention, feed-forward networks, experts, state spaces, norms, embeddings and
heads, each with its facts. `attention.py` finds the products of attention, `masks.py` the keys that masks hide, and
`placed.py` the vectors of images in texts, which costs read as well. `core.py` finds attention that generated code can
compute in one call, and `terms.py` describes what small bodies compute.
"""
