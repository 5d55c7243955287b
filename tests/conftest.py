"""What all tests share: no test is timed, so no property test has a deadline either."""

from hypothesis import settings

settings.register_profile("dither", deadline=None)
settings.load_profile("dither")
