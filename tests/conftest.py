"""What all tests share: no test is timed, so no property test has a deadline either.

`make test` looks at the same examples every time, so that it passes or fails for a reason in the change; `make test-long`
sets DITHER_SEARCH and looks for new ones.
"""

import os
import tempfile

from hypothesis import settings

_CACHE = tempfile.TemporaryDirectory(prefix="dither-tests-")  # what was read is not remembered beyond a run
os.environ["XDG_CACHE_HOME"] = _CACHE.name

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("searching" if os.environ.get("DITHER_SEARCH") else "repeatable")
