"""What `archspec build` writes."""

from small import complete

from archspec import testing


def prove(spec: str) -> testing.CommandResult:
    """Build the file of a text only if it is proven to be equivalent to it."""
    return testing.run("build", "-", "--prove", stdin=complete(spec))


def build(spec: str, **overrides: object) -> str:
    """Return the PyTorch file of a spec: a bundled name or path, or a text of several lines."""
    is_text = "\n" in spec
    settings = [f"--set={name}={str(value).lower()}" for name, value in overrides.items()]
    result = testing.run("build", "-" if is_text else spec, *settings, stdin=complete(spec) if is_text else "")
    assert not result.status, result.errors
    return result.output
