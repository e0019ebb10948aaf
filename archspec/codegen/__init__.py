"""PyTorch code from specs: each definition becomes a class or a function, in the order in which they use each other.

    the Python functions      build (torch_source, to_torch), interface
    the file                  file, module_writer, emitted, parameters, constructor_arguments
    what a file shares        context, names
    one definition            scope, statements, values
    `__init__`                init_method, init_statements, initializers, base_class, requirements
    addresses in Python       attribute_paths, containers, contiguous
    `forward`, functions      forward_method, expressions, chains, input_sizes, size_checks
    operations on tensors     tensor_code, tensor_types, operations, rearranging
    numbers                   static_code, number_functions, number_code
    what PyTorch has itself   torch_layers, known_modules, attention, experts

Translation reads the resolved form (`archspec.compiler.resolve.nodes`) and the values that the trace
(`archspec.compiler.elaborate.trace`) recorded. It makes Python as `ast` nodes, which `archspec.codegen.python` shortens
and prints.
"""
