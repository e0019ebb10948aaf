"""Specs from PyTorch modules.

    the Python function       api, subject, subjects, calling; `sources/`: files, configurations and collections
    a module as a program     capture, signatures, modes, repeating
    values                    values, builder, views, rows, indices, library, tensors, stored, source_names
    from exported programs    recording, buckets; `operations/`: the counterparts of PyTorch's operations
    what modules compute      layers, attentions, rotary, scaling, experts
    constants                 constants, frequencies, sinusoids, regions
    definitions               program, blocks, runs, layer_loops, facts, lengths
    their statements          writing, chains, loops, stacks, roles, templates
    notation                  names, notation, numbers, text
    sizes as hyperparameters  sizes, expressions, candidates, remainders, conditions, accidents
    the check                 check

`torch.export` records a small module as a program, `recording` makes values of its nodes, and `program` divides these
into definitions with gaps for sizes. A second small module shows on which fields of the configuration each size
depends. A spec is returned if `check` finds that it computes what the module does.
"""
