"""Names, numbers and templates of the lifted text."""
