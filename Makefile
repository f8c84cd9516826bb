# Each target installs what it needs by itself: Python 3.11+, make and, except for `check`, Java 17+ are enough.
#
#   PYTHON=python3.12   the interpreter that .venv is made from
#   ARGS="-k name"      more arguments for pytest, the demo or the benchmarks
#   SERVERS=azurite     those of test-cloud; all without it

PYTHON ?= python3
export PYTHON
ARGS ?=
PART ?=
SERVERS ?=

# Where compiled files are not wanted beside the sources they are kept apart: without any, each of the many processes
# that tests start would compile all that it imports, which takes it two seconds.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.pytest_cache/compiled
endif

BIN := .venv/bin
# Stamps: written after a successful sync, so that the second run starts at once.
SYNCED := .venv/.synced
BENCH_SYNCED := .venv/.synced-bench
DBT_SYNCED := .venv-dbt/.synced
SETUP := scripts/setup.sh scripts/uv.sh scripts/find_python.sh scripts/find_uv.py

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-s3 demo-kafka demo-live test test-unit test-spark test-interop test-slow test-cluster test-cloud test-dbt test-peers test-matrix bench model site \
	fuzz fuzz-files check check-format check-lint check-types check-pyright check-imports check-text audit sbom soak format java clean clean-all

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(SYNCED) ## Make .venv as uv.lock says

demo: java $(SYNCED) ## Run the main job on a year of flights and print its report
	$(BIN)/python -m scripts.demo.batch $(ARGS)

demo-s3: java $(SYNCED) ## Run the main job on an S3 server of this machine, its driver killed on the way
	$(BIN)/python -m scripts.demo.s3 $(ARGS)

demo-kafka: java $(SYNCED) ## Run flights through a Kafka broker, a queue and windows, in SQL
	$(BIN)/python -m scripts.demo.kafka $(ARGS)

demo-live: java $(SYNCED) ## Watch Kafka, a queue and windows while their driver is killed (ARGS="--seconds 60 --days 31")
	$(BIN)/python -m scripts.demo.live $(ARGS)

test: java $(SYNCED) ## Run the tests: unit, Spark, and the reference engines
	$(BIN)/python scripts/run_tests.py $(ARGS)

test-unit: $(SYNCED) ## Run only the tests that need no JVM
	$(BIN)/pytest -m "not spark and not interop and not slow and not bench" $(ARGS)

test-spark: java $(SYNCED) ## Run only the tests with a Spark session
	$(BIN)/pytest -m "spark and not slow and not bench" $(ARGS)

test-interop: java $(SYNCED) ## Run only the tests against Java Paimon and pypaimon
	$(BIN)/pytest -m "interop and not spark and not slow and not bench" $(ARGS)

test-slow: java $(SYNCED) $(DBT_SYNCED) ## Run the long tests, in parts of 50 minutes at most (PART="drivers faults")
	$(BIN)/python scripts/run_slow_tests.py $(PART) -- $(ARGS)

test-cluster: java $(SYNCED) $(DBT_SYNCED) ## Run the tests that start a cluster, a server or another program: standalone, Connect, dbt, the SQL prompt
	$(BIN)/python -m tests.class_archive
	$(BIN)/pytest -m "cluster and not slow" tests/spark tests/faults/streams tests/docs $(ARGS)

test-dbt: java $(SYNCED) $(DBT_SYNCED) ## Run dbt and PyHive, which have an environment of their own, on the Thrift server
	$(BIN)/pytest tests/spark/test_dbt.py tests/spark/test_servers.py -k "dbt or thrift" $(ARGS)

test-peers: $(SYNCED) ## Run pypaimon's own tests with Penstock as a second reader (ARGS="pypaimon/tests/variant_test.py")
	$(BIN)/python scripts/test_peers.py $(ARGS)

test-cloud: $(SYNCED) ## Run the tests against Azure, HDFS and S3 servers that npm, Maven and Go fetch
	scripts/cloud_servers.sh $(SERVERS)
	$(BIN)/pytest -m "cloud" $(ARGS)

fuzz-files: $(SYNCED) ## Give damaged files to every decoder
	$(BIN)/python -m tests.support.fuzz $(ARGS)

fuzz: java $(SYNCED) ## Compare random tables through all readers (ARGS="--cases N --readers arrow,spark,pypaimon,java")
	$(BIN)/python -m tests.support.differential $(ARGS)

bench: java $(BENCH_SYNCED) ## Time our own work next to its peers
	$(BIN)/python -m bench $(ARGS)

test-matrix: $(SYNCED) $(DBT_SYNCED) ## Build the wheel reproducibly and try it on each Python and PySpark (ARGS="--python none --spark oldest")
	$(BIN)/python scripts/test_matrix.py $(ARGS)

model: $(SYNCED) ## Search the model of the commit protocol, minutes, and print the figures
	$(BIN)/python -m tests.model $(ARGS)

soak: java $(SYNCED) ## Run streams, upkeep and readers beside each other, and see that nothing grows
	$(BIN)/python -m tests.soak $(ARGS)

check: check-format check-lint check-types check-imports check-text audit ## Format, lint, types, which package imports which, licences

check-format: $(SYNCED)
	$(BIN)/ruff format --check .

check-lint: $(SYNCED)
	$(BIN)/ruff check .

check-types: $(SYNCED)
	$(BIN)/mypy

check-pyright: $(SYNCED) ## Check a user's script strictly with pyright, which npm fetches
	scripts/pyright.sh

check-imports: $(SYNCED)
	$(BIN)/lint-imports --no-cache

check-text: $(SYNCED)
	$(BIN)/python scripts/check_text.py

audit: $(SYNCED) ## Check licences and versions of what is installed
	$(BIN)/python scripts/audit.py

site: ## Build the documentation into site/ with an environment of its own, without PySpark; broken links fail
	@scripts/mermaid.sh
	@UV_PROJECT_ENVIRONMENT=.venv-docs scripts/uv.sh sync --locked --quiet --only-group docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build

sbom: $(SYNCED) ## Print the bill of materials that each wheel has
	@$(BIN)/python scripts/sbom.py

changelog: $(SYNCED) ## Move changelog.d into CHANGELOG.md (VERSION=0.2.0)
	$(BIN)/towncrier build --version $(VERSION) --yes

format: $(SYNCED) ## Format the code and apply automatic lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# First, so that a missing Java is said before anything is downloaded.
java:
	@scripts/check_java.sh

$(SYNCED): pyproject.toml uv.lock $(SETUP)
	@scripts/setup.sh
	@touch $@

$(BENCH_SYNCED): $(SYNCED)
	@scripts/setup.sh bench
	@touch $@

$(DBT_SYNCED): pyproject.toml uv.lock scripts/uv.sh scripts/find_uv.py
	@UV_PROJECT_ENVIRONMENT=.venv-dbt scripts/uv.sh sync --locked --quiet --only-group dbt
	@touch $@

clean: ## Remove what runs left behind (environment and downloads stay)
	rm -rf demo-warehouse demo-kafka-warehouse demo-live-warehouse spark-warehouse metastore_db derby.log dist build site .interop/classes \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./.venv -prune -o -path ./.venv-docs -prune -o -path ./.venv-dbt -prune -o -path ./.interop -prune -o -name __pycache__ -type d -exec rm -rf {} +

clean-all: clean ## Remove the environment and the downloads too
	rm -rf .venv .venv-docs .venv-dbt .uv .interop .cloud .mermaid .pythons .pyright
