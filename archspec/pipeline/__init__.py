"""From what a user names (a bundled model, path, configuration, text or name on the hub) to a `Model` or its table.

Questions about a model belong to `analysis`, pictures to `drawing`. Begin with `compile.py` (`load`), then `locate.py`
(what is named), `files.py` (opening it), `tables.py` and `cache.py` (what is not compiled again), and `model.py`.
"""
