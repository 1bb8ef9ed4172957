"""What every test of the whole system may ask for."""

from engine_at_home import home  # noqa: F401 (a fixture)
from slurm_site import site, slurm  # noqa: F401 (fixtures)
