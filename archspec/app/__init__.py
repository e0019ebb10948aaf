"""Entry points: the command line (`cli/`), the language server (`lsp/`) and the plugin of pytest.

They parse arguments, call a function of another package and print the result; they compute nothing. Begin with
`cli/commands.py`, the list of commands; `cli/run/` has one module per command.
"""
