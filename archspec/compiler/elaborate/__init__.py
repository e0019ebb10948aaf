"""Resolved form to IR: `models.py`. `ownership.py` declares tensors and adds up their parameters, `ties.py` subtracts
tied ones, `bodies.py` compiles the computation.
"""
