"""What all tests share: no test is timed, so no property test has a deadline either.

`make test` looks at the same examples every time, so that it passes or fails for a reason in the change; `make test-long`
sets DITHER_SEARCH and looks for new ones.
"""

import gc
import os
import tempfile

from hypothesis import settings

_CACHE = tempfile.TemporaryDirectory(prefix="dither-tests-")  # what was read is not remembered beyond a run
os.environ["XDG_CACHE_HOME"] = _CACHE.name

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("searching" if os.environ.get("DITHER_SEARCH") else "repeatable")


def pytest_collection_finish() -> None:
    """Takes what was imported and collected out of garbage collection: it stays for the whole run, and walking it is dear."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Gives it back, so that libraries find nothing left over when Python ends."""
    gc.unfreeze()
