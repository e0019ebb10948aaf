"""`archspec explain --flops`: counting conventions of operations."""
