"""`archspec formula`: compilation with open hyperparameters; begin with `api.py` and `derivation.py`."""
