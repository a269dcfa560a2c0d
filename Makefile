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
test: ## unit tests and the end-to-end suite, but for what takes a minute
	$(MAKE) test-unit
	$(MAKE) test-cluster SHORT=1
	$(MAKE) e2e SHORT=1
	$(MAKE) cluster-down

.PHONY: test-unit
test-unit: ## the tests that need no cluster
	go test -timeout 10m ./...
	go -C manifests/cel test ./...

# Every Go module of the repository; go.mod of the older Kubernetes releases is tidied by hand.
MODULES := . manifests/cel e2e/cluster e2e/cluster/kubernetes e2e/cluster/node

.PHONY: verify
verify: verify-go verify-lint verify-manifests ## format, vet, lint, generated files, import rule, manifests

.PHONY: verify-go
verify-go:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not formatted by gofmt: $$unformatted"; exit 1; }
	@for module in $(MODULES); do go -C $$module mod tidy -diff || { echo "$$module/go.mod: run go mod tidy"; exit 1; }; done
	go vet -tags e2e,bench ./...
	go -C e2e/cluster vet ./...
	go -C manifests/cel vet ./...

.PHONY: verify-lint
verify-lint: ## golangci-lint, which also holds the import rule (.golangci.yml)
	go -C .ci/lint build -o $(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(BIN)/golangci-lint run --build-tags e2e,bench ./...

.PHONY: verify-manifests
verify-manifests: dist
	@git diff --exit-code --stat dist || { echo "dist/ was out of date: commit what make dist has written"; exit 1; }
