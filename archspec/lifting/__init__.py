"""Turn a PyTorch module into a readable spec."""
