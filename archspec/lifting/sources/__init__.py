"""Where a module to lift comes from: a Python file, a configuration, or a collection of models."""
