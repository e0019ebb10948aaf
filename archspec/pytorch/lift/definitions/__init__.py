"""Division of values into definitions: blocks, runs of equal layers, loops over layers."""
