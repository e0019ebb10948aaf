"""The language server: what an editor shows and offers while one writes `.arch` files."""
