"""`plan`: the bytes of one device in training, by category, as engines divide a model among devices."""
