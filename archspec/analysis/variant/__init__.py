"""`archspec new` and the text of model statements with overrides."""
