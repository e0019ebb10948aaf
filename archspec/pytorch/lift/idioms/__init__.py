"""Recognition of computations: attention, norms, rotary positions, experts, tables of constants."""
