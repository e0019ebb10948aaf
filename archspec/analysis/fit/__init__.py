"""Whether a model fits the memory of a device, the longest context and the largest batch."""
