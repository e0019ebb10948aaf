"""Files that a SPEC does not name itself: the configuration in a directory, and models of the hub."""

from __future__ import annotations

import os

from archspec import resources
from archspec.configuration import LARGEST_CONFIGURATION
from archspec.pipeline.spec import Spec

CONFIG = "config.json"


def located(spec: Spec) -> Spec:
    """Return a SPEC whose path is that of a file, or its bundled name; any other one as it is.

    Raises ArchError for a name of the hub (`owner/name`) that cannot be found.
    """
    path = spec.path
    if path is None or path == "-" or "\0" in path:
        return spec
    if os.path.isfile(config := os.path.join(path, CONFIG)):
        return spec._replace(path=config)
    return (_of_hub(spec, path) if not os.path.lexists(path) else None) or spec


def located_by_name(spec: Spec) -> Spec | None:
    """Return the model of the hub with a name that is not bundled, if it is in the local cache; otherwise None."""
    name = spec.model or ""
    found = _of_hub(spec, name, may_download=False) if "/" not in name else None
    return None if found == spec else found


def _of_hub(spec: Spec, name: str, *, may_download: bool = True) -> Spec | None:
    from archspec.hub import find, names  # which few commands need

    specs = resources.specs_root()
    if not names.is_id(name):
        return None
    id = names.full_id(name, specs)
    found = names.bundled_name(id, specs)
    if found is not None:
        return spec._replace(path=None, model=found)
    path = find.cached_config(id, name) if not may_download else find.config(id, LARGEST_CONFIGURATION)
    return spec._replace(path=path, model=None, label=f"{id}/{CONFIG}", is_stable=False) if path is not None else None
