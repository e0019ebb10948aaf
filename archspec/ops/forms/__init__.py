"""Normal forms of operations: what each computes, as elements of `archspec.normal`.

A form of an elementwise operation takes the elements of its inputs; any other takes its inputs as arrays, and its
hyperparameters by name. An operation without a form is equal only to itself.
"""
