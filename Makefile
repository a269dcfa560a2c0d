# Stayput. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
KUBECONFIG ?= $(CURDIR)/.cluster/kubeconfig
export KUBECONFIG
BIN := $(CURDIR)/.cluster/bin

# Everything is compiled with the same flags, so that programs, tests and linters share what go has compiled: a package with other flags is
# compiled once more. Nothing is debugged, so no package has DWARF, which saves a sixth of a build with empty caches.
export CGO_ENABLED := 0
export GOFLAGS := -gcflags=all=-dwarf=false
# Each module is built with the versions of its own go.mod, whatever workspace a developer has around this repository.
export GOWORK := off

include e2e/cluster/cluster.mk
include manifests/install.mk
include e2e/e2e.mk
include .ci/release/release.mk
include e2e/conformance/conformance.mk
include inplace/simulation/oracle/oracle.mk

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## unit tests, short fuzzing, the tests of the cluster, and the end-to-end suite without slow scenarios
	$(MAKE) test-unit
	$(MAKE) fuzz
	$(MAKE) test-cluster SHORT=1
	$(MAKE) e2e SHORT=1
	$(MAKE) cluster-down

.PHONY: test-unit
test-unit: ## the tests that need no cluster
	go test -timeout 20m ./...
	go -C manifests/cel test ./...
	go -C e2e/report test ./...
	go -C .ci/mutation test ./...
	go -C .ci/notice test ./...
	go -C .ci/workflows test ./...
	cd e2e/conformance && go test ./controllers ./verdict

# Every fuzz target, as ./package:Target, because go test fuzzes one target at a time. go test writes what it finds into testdata/fuzz of
# the package; from then on, the unit tests run it as well.
FUZZED := ./webhook:FuzzRequests ./inplace/edit:FuzzRandom ./inplace/deployments:FuzzTemplates
FUZZTIME ?= 10000x

# By default, Go spends a minute on making each interesting input smaller; so -fuzzminimizetime is set. FUZZTIME is a number of inputs,
# because until Go 1.27 a time that is over may fail with "context deadline exceeded" (go.dev/issue/75804).
.PHONY: fuzz
fuzz: ## fuzz handlers and comparison, 10,000 inputs each, or as long as FUZZTIME says
	@there=$$(git grep -h '^func Fuzz' -- '*_test.go' | wc -l); [ $$there = $(words $(FUZZED)) ] || { echo "there are $$there fuzz targets: FUZZED has to list them"; exit 1; }
	@for target in $(FUZZED); do \
	  (set -x; go test $${target%:*} -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 2); \
	done

MUTATED ?= $(shell go list -f '{{.Dir}}' ./inplace/... ./webhook | grep -v -e /fixture -e /simulation | sed 's,^$(CURDIR)/,,')
# The seeds of each simulation, for each change.
mutation: export STAYPUT_SEEDS ?= 6

.PHONY: mutation
mutation: ## change one condition after another of MUTATED, packages of inplace and webhook, and list the changes that no test notices
	go -C .ci/mutation build -o $(BIN)/mutation .
	copy=$$(mktemp -d); trap "rm -r $$copy" EXIT; git ls-files -z | xargs -0 cp --parents -t $$copy; $(BIN)/mutation $$copy $(MUTATED)

# The Go modules that verify-go checks. The go.mod files of Kubernetes releases other than the default are tidied by hand.
MODULES := . manifests/cel e2e/cluster e2e/cluster/kubernetes e2e/cluster/node e2e/conformance inplace/simulation/oracle e2e/report .ci/mutation .ci/notice .ci/workflows

.PHONY: verify
verify: verify-workflows verify-go verify-lint verify-notice verify-docs verify-prose docs-site verify-generated verify-performance verify-manifests verify-chart verify-monitoring ## format, vet, lint, generated files, import rule, manifests, alerts, links and English of documents

.PHONY: verify-go
verify-go:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not formatted by gofmt: $$unformatted"; exit 1; }
	@for module in $(MODULES); do go -C $$module mod tidy -diff || { echo "$$module/go.mod: run go mod tidy"; exit 1; }; done
	go vet -tags helm,$(E2E_TAGS) ./...
	go -C e2e/cluster vet ./...
	go -C manifests/cel vet -tags helm ./...
	go -C e2e/report vet ./...
	go -C .ci/notice vet ./...
	go -C .ci/workflows vet ./...

# shellcheck and pyflakes are whatever the machine has, or nothing; so actionlint runs without them.
.PHONY: verify-workflows
verify-workflows: ## actionlint; whether actions are pinned by digest, and Renovate updates every go.mod
	go -C .ci/workflows build -o $(BIN)/actionlint github.com/rhysd/actionlint/cmd/actionlint
	$(BIN)/actionlint -shellcheck= -pyflakes=
	go -C .ci/workflows test -count=1 ./...

# This is not part of verify: a new vulnerability would break an unchanged tree, and one in Go itself can only be fixed with another Go
# version. VULNDB is a fixed version of the vulnerability database, with the vulnerabilities known at its time. https://vuln.go.dev has all
# that are known today.
VULNDB := golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018
VULNERABILITIES ?= file://$$(go mod download -json $(VULNDB) | sed -n 's/.*"Dir": "\(.*\)",/\1/p')/data/osv

.PHONY: verify-vulnerabilities
verify-vulnerabilities: ## whether cmd/ calls code with a known vulnerability; VULNERABILITIES=https://vuln.go.dev for those known today
	go -C .ci/vulnerabilities build -o $(BIN)/govulncheck golang.org/x/vuln/cmd/govulncheck
	$(BIN)/govulncheck -db $(VULNERABILITIES) ./cmd/...

.PHONY: verify-lint
verify-lint: ## golangci-lint, which also checks the import rule (.golangci.yml)
	go -C .ci/lint build -o $(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(BIN)/golangci-lint run --build-tags helm,$(E2E_TAGS) ./...

.PHONY: verify-manifests
verify-manifests: dist ## whether kubectl renders the manifests and each overlay
	@for overlay in manifests/overlays/*; do $(KUBECTL) kustomize $$overlay > /dev/null; done

.PHONY: generate
generate: ## write the deep copies of Stayput's types with controller-gen
	go -C .ci/generate build -o $(BIN)/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
	$(BIN)/controller-gen object paths=./inplace/...

.PHONY: verify-generated
verify-generated: generate
	@git diff --exit-code --stat -- ':(glob)inplace/**/zz_generated.*' && [ -z "$$(git ls-files --others -- ':(glob)inplace/**/zz_generated.*')" ] || \
	  { echo "the deep copies were out of date: commit what make generate has written"; exit 1; }

RELEASED_COMMANDS := ./cmd/stayput ./cmd/kubectl-stayput

.PHONY: notice
notice: ## write NOTICE: the modules linked into the manager and kubectl's plugin, and their licences
	@go -C .ci/notice build -o $(BIN)/notice .
	@text=$$($(BIN)/notice list LICENSE $(RELEASED_COMMANDS)); echo "$$text" > NOTICE

# ko copies the folder into the image, and does not follow symbolic links. make release takes the files for its archives from there.
.PHONY: licenses
licenses: ## write what goes with a binary into cmd/stayput/kodata: LICENSE, NOTICE and THIRD_PARTY_LICENSES, the full texts
	@go -C .ci/notice build -o $(BIN)/notice .
	@mkdir -p cmd/stayput/kodata && cp LICENSE NOTICE cmd/stayput/kodata/
	@text=$$($(BIN)/notice texts LICENSE $(RELEASED_COMMANDS)); echo "$$text" > cmd/stayput/kodata/THIRD_PARTY_LICENSES

.PHONY: verify-notice
verify-notice: notice
	@git diff --exit-code --stat NOTICE || { echo "NOTICE was out of date: commit what make notice has written"; exit 1; }

.PHONY: docs
docs: ## write the pages of docs/reference that follow from the code
	@go run ./docs/generate docs/reference

.PHONY: verify-docs
verify-docs: docs
	@git diff --exit-code --stat docs/reference && [ -z "$$(git ls-files --others --exclude-standard docs/reference)" ] || { echo "docs/ was out of date: commit what make docs has written"; exit 1; }

.PHONY: verify-prose
verify-prose: ## whether the pages' links and anchors exist, and their English is plain
	go run ./docs/check

.PHONY: docs-site
docs-site: ## build the site of docs/ into .cluster/site, and check its links
	go -C .ci/hugo build -o $(BIN)/hugo github.com/gohugoio/hugo
	$(BIN)/hugo --source docs/site --destination $(BIN)/../site --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	go run ./docs/check -site .cluster/site

.PHONY: verify-performance
verify-performance: BENCH_OUTPUT = $(CURDIR)/docs/explanation/performance
verify-performance: performance
	@git diff --exit-code --stat docs/explanation/performance docs/explanation/performance.md docs/explanation/costs.md README.md || { echo "the pages of figures were out of date: commit what make performance has written"; exit 1; }

.PHONY: verify-chart
verify-chart: manifests dist helm ## whether manifests/ is up to date with the Helm chart, and both Helm versions render its options
	@git diff --exit-code --stat manifests && [ -z "$$(git ls-files --others --exclude-standard manifests)" ] || { echo "manifests/ was out of date: commit what make manifests has written"; exit 1; }
	HELMS='$(HELMS)' go test -tags helm -count=1 ./charts
	HELMS='$(HELMS)' go -C manifests/cel test -tags helm -count=1 -run Chart .

.PHONY: verify-monitoring
verify-monitoring: ## test the Prometheus rules, and check the metrics that rules and dashboard name
	go -C .ci/prometheus build -tags remove_all_sd -o $(BIN)/promtool github.com/prometheus/prometheus/cmd/promtool
	$(BIN)/promtool check rules charts/stayput/files/rules.yaml
	$(BIN)/promtool test rules manifests/rules_test.yaml
	PROMTOOL=$(BIN)/promtool go test -count=1 ./manifests -run 'Monitoring|Alerts|Dashboard'
