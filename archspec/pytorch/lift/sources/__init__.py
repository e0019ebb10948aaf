"""Sources of modules to lift: a Python file, a configuration, or a collection of models."""
