# SPDX-License-Identifier: BSD-3-Clause
# Cordon: `make help` explains the targets.

BUILD	?= $(CURDIR)/build
PYTHON	?= /usr/bin/python3
KDIR	?= /lib/modules/$(shell uname -r)/build
PREFIX	?= /usr/local
T	?=
FRAMES	?= 1000000
LAB	:= $(PYTHON) tools/lab/lab
KERNELS	:= 7.3 6.12
export BUILD PYTHON

.DEFAULT_GOAL := help

help: ## this text
	@echo 'Targets:'
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'
	@echo
	@echo 'Variables:'
	@echo '  KDIR=DIR        kernel build directory for `make modules` ($(KDIR))'
	@echo '  T=WORDS         `make check` runs only tests whose names match (the syntax of pytest -k)'
	@echo '  KEEP=1          `make demo` leaves a shell open on both hosts'
	@echo '  BUILD=DIR       where everything is built ($(BUILD))'
	@echo '  PREFIX=DIR      where `make install` installs the card ($(PREFIX))'

setup: ## install what the host needs (as root), or name it
	@tools/setup.sh build lab

demo: setup firmware lab-modules ## two gateways with a strongSwan tunnel in packet offload, seen working
	@$(PYTHON) tools/demo/demo $(if $(KEEP),--keep)

check: setup firmware lab-modules ## all tests; T=... for some of them
	@tools/check/check "$(T)"

oracle: setup firmware lab-modules ## FRAMES=1000000 frames to card and kernel's software, 5000 SAs of any attributes; SEED=N
	@ORACLE_FRAMES=$(FRAMES) ORACLE_ATTRIBUTES=5000 tools/check/check "test_same_verdict or test_attributes"

lint: root ## every checker; no output is good
	@tools/setup.sh build lint
	@tools/lint.sh

lint-prove: root ## plant a bug for each checker: it has to find it
	@tools/setup.sh build lint
	@tools/lint.sh --prove

intree: root ## build the driver inside Debian's kernel source, as it stands in a kernel tree
	@tools/intree.sh

firmware: ## build the card, cordond and cordon-fw, into build/firmware
	@tools/setup.sh build
	$(MAKE) -C firmware

modules: ## build the driver for KDIR
	drivers/build.sh "$(KDIR)" "$(BUILD)/modules"

root: ## make the lab's root file system
	@tools/setup.sh lab
	$(LAB) root

# The driver for the lab's kernels, built with the lab's compiler.
lab-modules: root
	@set -e; for k in $(KERNELS); do $(LAB) module $$k; done

install: firmware ## install the card and its manual page below PREFIX
	install -D -m 755 $(BUILD)/firmware/cordond $(DESTDIR)$(PREFIX)/sbin/cordond
	install -D -m 755 $(BUILD)/firmware/cordon-fw $(DESTDIR)$(PREFIX)/libexec/cordon/cordon-fw
	install -D -m 644 docs/man/cordond.8 $(DESTDIR)$(PREFIX)/share/man/man8/cordond.8

clean: ## delete what was built (the lab's root stays in its cache)
	rm -rf $(BUILD)

.PHONY: help setup demo check oracle lint lint-prove intree firmware modules root lab-modules install clean
