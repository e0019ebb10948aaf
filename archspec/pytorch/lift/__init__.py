"""Specs from PyTorch modules.

    sources/       what to lift: files, configurations, factories, collections; small modules in place of large ones
    values/        how values are written: the builder, views, rows, indices
    idioms/        recognized computations: norms, attention, rotary positions, experts, tables of constants
    definitions/   division into blocks, runs of layers, loops
    statements/    the statements of a definition
    notation/      names, templates with gaps for sizes
    sizes/         sizes as hyperparameters

`torch.export` records a small module as a program (`capture.py`), `recording.py` makes values of its nodes, and
`statements/program.py` divides these into definitions with gaps for sizes. A second small module shows on which fields
of the configuration each size depends. A spec is returned if `check.py` confirms that it computes what the module does.
"""
