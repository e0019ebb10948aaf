"""Changes of PyTorch while a module is exported, and custom operations."""
