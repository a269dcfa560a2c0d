# Stayput. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
KUBECONFIG ?= $(CURDIR)/.cluster/kubeconfig
export KUBECONFIG
BIN := $(CURDIR)/.cluster/bin

include e2e/cluster/cluster.mk
include manifests/install.mk
include e2e/e2e.mk

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## unit tests and the end-to-end suite
	$(MAKE) test-unit
	$(MAKE) test-cluster
	$(MAKE) e2e
	$(MAKE) cluster-down

.PHONY: test-unit
test-unit: ## the tests that need no cluster
	go test -timeout 10m ./...

.PHONY: verify
verify: ## format, vet, lint, generated files, import rule, manifests
	hack/verify
