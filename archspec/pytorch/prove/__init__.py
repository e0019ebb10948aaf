"""Decisions whether specs and PyTorch modules compute the same, by their normal forms, or else by their outputs.

    the Python functions      api, prove, factories, report
    both sides                sides, bodies, places, constants, compare, stack
    exported programs         exporting, programs, formulas, folding; capture and `calls/` give their normal forms
    changes before exporting  intercepting, own_operations, direct, epsilons, known_numbers, lengths, recurrent,
                              iterations, bags, hints
    rewriting of programs     held, in_place, mapped, matches, ones, rolling, scattered, selection, substitution
    outputs                   numeric, evaluate, contraction, memory, precision, restoring

Normal forms are arrays and elements of `archspec.ir.normal`, by the forms of operations in `archspec.ir.normal.forms`.
"""
