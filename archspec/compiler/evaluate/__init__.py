"""Values, numbers and the interpreter that both passes share; `program.py` is the state of a compilation."""
