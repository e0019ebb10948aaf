"""What a picture shows, before any layout: `plan.py` has the classes, `expand.py` makes a plan of a model."""
