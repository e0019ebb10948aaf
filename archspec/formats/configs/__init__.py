"""Conversion of Hugging Face configurations (`config.json`) to specs: `settings.py` sets hyperparameters from fields,
as `specs/configs/TYPE.yaml` describes (`documents.py` composes these files, `family.py` reads them), and `spec.py`
writes the spec. `classes.py` leaves out fields that the class of `transformers` does not read.
"""
