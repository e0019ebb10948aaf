"""Files of others, which are read without trusting them: checkpoints, configurations, folders of the hub.

They are not compared with a model here, and no code in a file is run. Begin with `checkpoints/checkpoint.py` (headers
of safetensors, PyTorch and GGUF files) and `configs/spec.py` (from `config.json` to a spec).
"""
