"""What users already hold: files of tensors, read for what their headers say. Nothing in them is trusted, or run."""
