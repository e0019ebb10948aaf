"""Use of generated modules: `to_torch.py` makes them, `weights.py` fills them, `activations.py` measures memory."""
