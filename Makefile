# Every target does its own set-up. `make` alone says what there is.

CARGO ?= cargo
ASSAY := target/release/assay

.PHONY: help demo build test test-real instructions instructions-dev bench bench-http2 bench-switch bench-working-set verify docs fuzz torture soak man dist dist-check dist-try site gallery screenshots bench-size

help:
	@echo "make demo    build Assay and run its demo: a workload through the built-in caching proxy"
	@echo "make build   build $(ASSAY)"
	@echo "make test    what every change must pass: format, lints, all tests that no machine can fail"
	@echo "make test-real   the other tests: real proxies, browser, several machines, times (as root on Debian, installs what they need)"
	@echo "make instructions   count the instructions of a request on each hot path, and keep the counts (needs valgrind)"
	@echo "make bench   measure Assay itself against its peers"
	@echo "make bench-http2   measure how fast requests are coded and decoded in HTTP/2"
	@echo "make bench-switch   measure what the switch costs beside nginx, HAProxy and httpd"
	@echo "make bench-size     measure how fast caches are simulated, beside libCacheSim"
	@echo "make bench-working-set   show that a working set of 10^9 objects costs no more than one of 10^3"
	@echo "make verify  recount what Assay says by means that are not its own (a quarter of an hour)"
	@echo "make fuzz    the property tests, a thousand times as long (some need root)"
	@echo "make torture 500 faults at random instants, and what they leave; an hour of work under disturbance (needs root; two hours)"
	@echo "make soak    eight hours of work under disturbance: does anything grow, is anything lost? (needs root, nats-server, nginx)"
	@echo "make dist    packages, in target/dist: a tarball with an install script, .deb, .rpm, checksums, a list of materials"
	@echo "make dist-check     build and package twice, and compare (needs twice the time)"
	@echo "make dist-try       install each package in an empty Debian system, use it, remove it (needs root and debootstrap)"
	@echo "make man     manual pages, in target/man/man1"
	@echo "make docs    the manual as HTML, in target/book (needs mdbook)"
	@echo "make site    the manual with its gallery as a static site, in target/site, checked (needs mdbook and Chromium)"
	@echo "make gallery run the questions of the gallery that have no result yet (ten minutes; needs six proxies and Chromium)"
	@echo "make screenshots    the pictures of the README, from a run of the demo (needs Chromium)"

build:
	@command -v $(CARGO) >/dev/null || { echo "Assay is built with Rust: see https://rustup.rs" >&2; exit 2; }
	$(CARGO) build --release --package assay

# Built quickly, without optimisation across crates: `make build` makes what is measured with.
demo:
	@command -v $(CARGO) >/dev/null || { echo "Assay is built with Rust: see https://rustup.rs" >&2; exit 2; }
	$(CARGO) build --profile quick --package assay
	target/quick/assay run demo

# For tests, Clippy compiles most of our own code: `cargo clippy` would check all code, libraries too, that the compiler then reads again. The
# second variable is what `cargo clippy -- -D warnings` sets.
test test-real instructions-dev: export RUSTC_WORKSPACE_WRAPPER = $(CURDIR)/scripts/clippy-tests.sh
test test-real instructions-dev: export CLIPPY_ARGS = -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# These build everything: incremental state would only cost time and gigabytes.
test test-real instructions-dev: export CARGO_INCREMENTAL = 0

# Needs Rust, a C compiler and Python's standard library. The machine has no say in what these tests find.
test:
	$(CARGO) fmt --all --check
	CARGO="$(CARGO)" scripts/test.py gate
	$(CARGO) test --quiet --doc --workspace

# What needs real proxies, a browser, root or the clock. Where something cannot be installed, the tests that need it say that they were
# skipped and why; ASSAY_REQUIRE_REAL=1 makes that a failure.
test-real:
	scripts/test-setup.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --lib --bins --no-deps --document-private-items --quiet
	CARGO="$(CARGO)" scripts/test.py real
	ASSAY=target/debug/assay scripts/instructions.sh --check

# What a request takes on each hot path, kept in bench/instructions.json: of the build that the tests use, and of a release.
instructions-dev:
	$(CARGO) test --workspace --no-run --quiet
	ASSAY=target/debug/assay scripts/instructions.sh --update

instructions:
	scripts/instructions.sh --update

bench:
	scripts/bench.sh --page

# Of the protocol alone: no sockets, no robots.
bench-http2:
	$(CARGO) run --release --quiet --package assay-http2 --example exchange

bench-switch: build
	scripts/switch-cost.sh

bench-size:
	scripts/size-peers.sh

bench-working-set:
	scripts/working-set.sh

# Not part of `make test`: it takes a quarter of an hour. Needs the Python that scripts/test-setup.sh makes.
verify: build
	scripts/verify.sh --self-test
	scripts/verify.sh --page

fuzz:
	PROPTEST_CASES=250000 $(CARGO) test --release --lib --package assay-pgl --package assay-http --package assay-http2 \
		--package assay-cache --package assay-workload --package assay-record
	PROPTEST_CASES=250000 $(CARGO) test --release --test it --package assay-http
	PROPTEST_CASES=10000 $(CARGO) test --release --test it --package assay-http2
	for crate in proxy switch spe load; do CARGO="$(CARGO)" scripts/at-random.sh $$crate || exit 1; done

# Results are kept in target/torture and target/soak; what was interrupted is gone on with. An hour cannot decide whether something grows
# by a thousandth in it: what stays undecided is told, and is no failure here.
torture: build
	ASSAY=$(ASSAY) scripts/torture.sh
	scripts/soak.sh --self-test
	ASSAY=$(ASSAY) scripts/soak.sh --hours 1 --undecided-is-fine

soak: build
	ASSAY=$(ASSAY) scripts/soak.sh

# Static, with the C library of GNU. What it needs beside Rust: binutils, dpkg-deb, python3; for the .rpm, rpmbuild; for the wheel, maturin.
dist:
	scripts/dist.sh

dist-check:
	scripts/dist-check.sh

dist-try:
	scripts/dist/try.sh

# `man -M target/man assay-run` shows one of them.
man:
	$(CARGO) run --quiet --package assay -- man --dir target/man/man1

docs:
	@command -v mdbook >/dev/null || { echo "the manual is built with mdbook: cargo install mdbook" >&2; exit 2; }
	mdbook build

# Questions that have a result are not run again: a site whose text has changed is built within a minute.
site: gallery
	scripts/site.sh

gallery: build
	ASSAY=$(ASSAY) scripts/gallery.sh

screenshots: build
	ASSAY=$(ASSAY) scripts/screenshots.sh
