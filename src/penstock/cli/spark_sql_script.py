"""The script that ``penstock spark-sql`` passes to Spark's ``spark-submit``."""

import sys

# Spark puts the directory of the script first, whose modules are not top-level ones.
del sys.path[0]

from penstock.api.lazy import lazy_spark  # noqa: E402 - see above
from penstock.api.register import serve  # noqa: E402 - see above

if __name__ == "__main__":
    serve(lazy_spark.submitted_session())
    lazy_spark.run_prompt(sys.argv[1:])
