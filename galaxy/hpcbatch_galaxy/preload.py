"""Imported by the service that sets metadata: what each step would load by itself is there already.

Not all of it is there in every version of Galaxy: what is missing is left out, and then costs each step its time.
"""

import importlib
import pkgutil


def _load(name):
    try:
        importlib.import_module(name)
    except Exception:
        # Also a module that wants a library which is not installed: the step that needs it says so.
        pass


for _name in (
    "galaxy_ext.metadata.set_metadata",
    "galaxy.datatypes.registry",
    "galaxy.model.mapping",
    "galaxy.model.store",
    "galaxy.objectstore",
    "encodings.idna",
):
    _load(_name)

# The registry loads the modules of the datatypes that its file names.
import galaxy.datatypes  # noqa: E402

for _module in pkgutil.iter_modules(galaxy.datatypes.__path__, "galaxy.datatypes."):
    if not _module.ispkg:
        _load(_module.name)

# Mappers are configured when the first object is made.
try:
    import sqlalchemy.orm

    sqlalchemy.orm.configure_mappers()
except Exception:
    pass
