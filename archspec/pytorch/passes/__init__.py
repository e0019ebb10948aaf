"""Rewriting of exported programs, one idiom in each module; `programs.py` has what they share."""
