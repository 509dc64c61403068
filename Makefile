# What one types in this repository; `make` alone lists it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
ARGS ?=
SEED ?=
DB ?=
SERVER ?=
EFFECTS ?=
SCENARIO ?=
BENCH ?=
BODY ?=
TARGET ?=
SECONDS_EACH ?=
PROGRAM ?=
FOLDER ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## all tests, on SQLite, MySQL/MariaDB and PostgreSQL; ARGS go to cargo nextest
	@scripts/test.sh $(ARGS)

test-quick: ## rules and SQLite, in some two minutes after a build; ARGS go to cargo nextest
	@scripts/test.sh --quick $(ARGS)

test-lineage: ## the lineage corpus against PostgreSQL's own parser (pglast)
	@scripts/test-lineage.sh

test-api: ## every route against its description (Schemathesis); EXAMPLES=, SEED=, ONLY=
	@scripts/test-api.sh $(ARGS)

test-browser: ## the console in Chromium; ARGS go to the tests
	@scripts/test-node.sh
	@scripts/test-browser.sh
	cargo test --test it -- browser:: $(ARGS)

test-xxl: ## with executors of XXL-JOB that others wrote (Python, Node.js, Rust); ARGS go to the tests
	@scripts/test-node.sh
	@scripts/test-xxl.sh
	cargo test --test it -- xxl:: $(ARGS)

test-engines: ## remote applications on real Flink and Spark clusters (800 MB from PyPI, JDK 17); ARGS: flink | spark, then those of the tests
	@scripts/test-engines.sh $(ARGS)

test-cgroups: ## limits of scripts, on a kernel with cgroup v2 (user-mode Linux)
	@scripts/test-cgroups.sh

chaos: ## the long run with kills, stalls, cuts and restarts; SEED=, DB=, SERVER=, EFFECTS=
	@SEED=$(SEED) DB=$(DB) SERVER=$(SERVER) EFFECTS=$(EFFECTS) scripts/chaos.sh

bench: ## how fast batches go, triggers fire and executors are served; BENCH=, SCENARIO=, DB=, BODY=, RTT=ms, ARGS=--json
	@PROCESSION_BENCH_RTT=$(RTT) BENCH=$(BENCH) SCENARIO=$(SCENARIO) DB=$(DB) BODY=$(BODY) scripts/bench.sh $(ARGS)

bench-xxl: ## registrations, ends and runs of XXL-JOB's executors; SCENARIO=, DB=, ARGS=--json
	@BENCH=executors SCENARIO=$(SCENARIO) DB=$(DB) scripts/bench.sh $(ARGS)

bench-compare: ## what changed between two files of results: make bench-compare OLD NEW
	@scripts/bench-compare.sh $(filter-out $@,$(MAKECMDGOALS))

bench-scale: ## what size costs: a million dependencies, 100,000 jobs; needs servers (`make servers`); ARGS=--json
	cargo bench --quiet --bench scale -- $(ARGS)

bench-core: ## what graphs, readiness, the time ring and cron cost without a database; ARGS='chain'
	cargo bench --quiet --bench core -- $(ARGS)

check: ## format and lints, no tests
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	@scripts/names.sh

ci: ## all that must hold before a change goes in: check, then test
	@.ci/run

fuzz: ## readers of texts with libFuzzer, a minute each; TARGET=, SECONDS_EACH= (needs nightly and cargo-fuzz)
	@TARGET=$(TARGET) SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz.sh

deny: ## crates against deny.toml: licences, sources, banned ones; needs no network
	@scripts/deny.sh

advisories: ## known vulnerabilities of crates; fetches the database, and fails when it cannot be had
	@scripts/deny.sh advisories

sbom: ## the bill of materials (CycloneDX) into target/sbom
	@scripts/sbom.sh

package: ## .deb, .rpm and .tar.gz of the profile dist, bill of materials, digests into target/packages; PROGRAM=FILE takes a built one
	@scripts/package.sh $(PROGRAM)

test-package: ## installs the packages in a Debian made by debootstrap and runs the first batch there; FOLDER=target/packages takes made ones
	@scripts/test-package.sh $(FOLDER)

test-kubernetes: ## lints and renders the Helm chart, validates it and the manifests against Kubernetes' schemas
	@scripts/test-kubernetes.sh

release: ## what `make package` makes, the chart and the notes, from a clean commit
	@scripts/release.sh $(PROGRAM)

docs: ## write the generated documents anew; the outputs in the tutorial need servers (`make servers`)
	PROCESSION_UPDATE_DOCS=1 cargo test --test it docs::

docs-site: ## the documentation as a site with search, in both languages: target/docs-site/html
	@scripts/docs-site.sh

servers: ## start database servers for tests and leave them running
	@scripts/test-servers.sh start

servers-stop: ## stop and remove what `make servers` started
	@scripts/test-servers.sh stop

.PHONY: docs-site help test test-quick test-lineage test-api test-browser test-xxl chaos bench bench-xxl bench-compare bench-core bench-scale check ci fuzz deny advisories sbom package test-package test-kubernetes release docs servers servers-stop test-cgroups test-engines
