"""Makes every Python process of a driver under test count its calls to storage; see ``calls``.

Python imports a module of this name when it starts, and the drivers have this directory on their path.
"""

import os

if "PENSTOCK_TEST_STATE" in os.environ:
    from tests.faults.streams.calls import install

    install(os.environ["PENSTOCK_TEST_STATE"])
