"""Questions about models, one package for each: count, cost, formula, explain, audit, search, compare, verify, ...

No PyTorch and no generated code. Begin with `count/count.py`. A package is called like its command; `api.py` has the
Python function, `report.py` the output.
"""
