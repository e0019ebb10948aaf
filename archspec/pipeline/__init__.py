"""From what a user names to a compiled model (`compile`) or its table (`tables`)."""
