"""Conversion of Hugging Face configurations (`config.json`) to specs: `settings.py` sets hyperparameters from fields,
as `specs/configs/TYPE.yaml` describes (`family.py` reads it), and `spec.py` writes the spec.
"""
