.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-ground test-real test-versions test-openvox-ca check lint docs bench soak faults site samples interpreter package onefile container repo test-packages release clean

BIN := .venv/bin
PYTEST := $(BIN)/pytest -n auto
WHICH := -m "not slow"
# Tests start a thousand processes; without its bytecode each would compile the whole program first.
unexport PYTHONDONTWRITEBYTECODE

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1 -- /p' Makefile | awk -F ' -- ' '{printf "  make %-15s %s\n", $$1, $$2}'

demo: .venv/demo  ## a failing node, its fix and its first run, in an embedded lab
	$(BIN)/puppet-inspector demo

test: .venv/installed  ## the quick tests, in parallel
	$(PYTEST) $(WHICH)

test-slow: WHICH := -m slow
test-slow: test  ## the tests that `test` leaves out (those with real Puppet need puppet-agent and puppetserver)

test-all: WHICH :=
test-all: test  ## all tests, in one session: real masters are waited for while others run

test-ground:  ## the quick tests with the oldest and with the newest packages that pyproject.toml allows
	python=$$(.ci/find-python) && for versions in lowest-direct highest; do \
	    "$$python" -m venv .venv-$$versions && .venv-$$versions/bin/python -m pip install -q uv && \
	    .venv-$$versions/bin/uv pip install -q --python .venv-$$versions/bin/python --resolution $$versions -e '.[dev]' && \
	    .venv-$$versions/bin/pytest -n auto $(WHICH) || exit; \
	done

test-real: .venv/installed  ## install Debian's puppet-agent and puppetserver (root), and run the tests with them
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends puppet-agent puppetserver faketime nginx-light libnginx-mod-stream debootstrap iproute2 nftables openssh-client openssh-server puppet-lint
	PUPPET_INSPECTOR_REAL=required $(BIN)/pytest tests/real

check: lint test  ## format, lint, types, import contracts, quick tests

lint: .venv/installed  ## everything of `check` but the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed  ## write what README and docs hold of the program anew: rules, endpoints, quoted output, pictures
	$(BIN)/python -m tests.docs

bench: .venv/installed  ## measure what the proxy and the analysis cost, into docs/performance.md (root, needs real Puppet)
	$(BIN)/python -m tests.bench --write

soak: .venv/installed  ## faults, kills, 200 agents at once, memory (an hour and more): into docs/reliability.md
	$(BIN)/python -m tests.bench.soak --write

faults: .venv/installed  ## make real agents fail in every way we know, and try each fix: into docs/diagnosis.md (root)
	$(BIN)/python -m tests.real.faults --write
	$(BIN)/python -m tests.real.faults --write --way run
	$(BIN)/python -m tests.real.faults --write --release 9
	$(BIN)/python -m tests.real.faults --write --release 9 --way run --examples
	$(BIN)/python -m tests.real.faults --write --release 9 --way mitmdump --examples

test-versions: .venv/installed  ## play the matrix of versions, with other Debians in directories (an hour, root): into docs/coverage.md
	$(BIN)/python -m tests.real.versions --write

test-openvox-ca: .venv/installed  ## play with the openvox-ca that PUPPET_INSPECTOR_OPENVOX_CA names (root, real Puppet): into docs/coverage.md
	@: $${PUPPET_INSPECTOR_OPENVOX_CA:?names the program, beside which openvox-ca-ctl lies}
	$(BIN)/pytest tests/real/test_openvox_ca.py --update-golden
	$(BIN)/pytest tests/test_coverage.py::test_the_page_is_current --update-golden

site: .venv/installed  ## record a site of real modules on Puppet Server 7.9.5 and 8.7.0, and use the product on it (root, debootstrap)
	$(BIN)/python -m tests.real.real_site $${SITE:-/tmp/puppet-inspector-site}
	$(BIN)/python -m tests.real.real_site.check $${SITE:-/tmp/puppet-inspector-site}

samples: .venv/installed  ## record captures/samples anew from real runs (root, needs real Puppet)
	$(BIN)/python -m tests.real.record_samples

interpreter: .venv/python  ## build the Python that makes packages start from glibc 2.31 on, once (root, debootstrap)
	$(BIN)/python .ci/package/interpreter.py

package: .venv/installed  ## build wheel, sdist, one-file build, .deb, .rpm and SBOM into dist/, with their digests
	$(BIN)/python .ci/package/build.py all

onefile: package  ## the same: the file with its own Python is dist/puppet-inspector-VERSION-linux-MACHINE

container: .venv/installed  ## lay out what a container is made of, from the .deb: Containerfile and root
	$(BIN)/python .ci/package/container.py

repo: .venv/installed  ## make dist/repo for apt and dnf of the packages in dist/, signed: KEY=FINGERPRINT
	$(BIN)/python .ci/package/repo.py $(KEY)

test-packages: .venv/installed  ## install what `package repo` built on Debian 11, 12, 13, record a run, remove it (root, real Puppet)
	$(BIN)/python .ci/package/check.py

release:  ## check that version, changelog, tag and the files in dist/ belong together
	$(BIN)/python .ci/package/release.py

clean:  ## take the virtual environment and caches away
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist

.venv/python: .ci/find-python
	python=$$(.ci/find-python) && { [ -x $(BIN)/python ] || "$$python" -m venv .venv; }
	touch $@

# What the program needs; `make test` and the others need tools, too.
.venv/demo: .venv/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed: .venv/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch .venv/demo $@
