"""The language server: diagnostics, navigation, completion and edits of `.arch` files in an editor."""
