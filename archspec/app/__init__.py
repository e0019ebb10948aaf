"""What people start: the command line (`cli/`), the language server (`lsp/`) and the plugin of pytest.

It parses arguments, calls a function of another package and prints the result; nothing is computed here. Begin with
`cli/commands.py`, the list of commands; `cli/run/` has a file for each.
"""
