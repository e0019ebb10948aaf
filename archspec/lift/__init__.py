"""Turn a PyTorch module into a readable spec."""

from archspec.lift.api import lift as lift
from archspec.lift.api import lift_subject as lift_subject
from archspec.lift.subject import Subject as Subject
