"""What is public: the front page, and the submodules, by their addresses."""

import caldist

SUBMODULES = [
    "certificates", "clinical", "data", "datasets", "engines", "errors", "groups", "inference",
    "measures", "monitoring", "multiclass", "paper", "plots", "recalibration", "reporting",
]  # fmt: skip


def public(modules=SUBMODULES):
    """Return all public things by what follows ``caldist.``: each once, at its shortest address."""
    found = {name: getattr(caldist, name) for name in caldist.__all__}
    known = {id(thing) for thing in found.values()}
    for module in modules:
        place = getattr(caldist, module)
        for name in place.__all__:
            thing = getattr(place, name)
            if id(thing) not in known:
                known.add(id(thing))
                found[f"{module}.{name}"] = thing
    return found
