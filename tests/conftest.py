"""What every test shares: property tests that draw the same examples each time."""

from hypothesis import settings

# The first call of a compiled kernel takes seconds, which no deadline could tell from a fault.
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")
