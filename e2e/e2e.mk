# The end-to-end suite and the demonstration. Included by the top Makefile.
# What follows breaks things on purpose: never in the cluster that the caller's KUBECONFIG names.
e2e demo e2e-chart e2e-serving e2e-monitoring e2e-upgrade bench: override KUBECONFIG := $(CURDIR)/.cluster/kubeconfig

# A theme or THEME/SCENARIO, as a regular expression.
RUN ?= .
# How many scenarios are under way at most: more have the processors so busy that webhooks time out, and native writes pass.
SCENARIOS := $(shell expr 3 '*' $$(nproc))

.PHONY: plugin
plugin: ## build kubectl's plugin, into .cluster/bin
	@go build -trimpath -o $(BIN)/kubectl-stayput ./cmd/kubectl-stayput

.PHONY: e2e
e2e: cluster install plugin ## the end-to-end suite; RUN=undo/half for some of it, SHORT=1 without what takes long or shares its rule with another
	go test -tags e2e -count=1 -timeout 75m -parallel $(SCENARIOS) $(if $(SHORT),-short) ./e2e -run '/$(RUN)'

.PHONY: demo
demo: cluster install ## what Stayput does, and what it costs beside a native rollout, in two and a half minutes
	@go build -o $(BIN)/generator ./e2e/load/generator
	@$(BIN)/cluster push fill:latest $(BIN)/images/app
	@PATH="$(BIN):$$PATH" e2e/demo.sh

.PHONY: e2e-serving
e2e-serving: cluster install ## updates under load, of which none may lose a request; TIMES=3 in a row
	go test -tags e2e $(if $(SHORT),-short) -v -count=$(or $(TIMES),1) -timeout 60m ./e2e -run '^TestServing$$/$(RUN)'

.PHONY: e2e-chart
e2e-chart: cluster helm image uninstall ## the Helm chart's life with Helm 3 and 4, from a cluster without Stayput to one; RUN=helm4 for one of them
	go test -tags e2e,chart -v -count=1 -timeout 60m ./e2e -run '^TestChart$$/$(RUN)'

# Not run by any test: docs/kind.md says what of it is the same as in the cluster that is.
kind kind-down: override KUBECONFIG := $(CURDIR)/.cluster/kind.kubeconfig

.PHONY: kind
kind: ## with Docker and kind: a cluster, Stayput and one update in place; see docs/kind.md
	@mkdir -p $(dir $(KUBECONFIG))
	@e2e/kind.sh

.PHONY: kind-down
kind-down: ## remove the cluster of make kind
	kind delete cluster --name $${KIND_NAME:-stayput}

# Prometheus is built without its web page, which would have to be built with npm.
.PHONY: e2e-monitoring
e2e-monitoring: cluster install ## every expression of manifests/monitoring on a real Prometheus that scrapes the managers
	go -C .ci/prometheus build -o $(BIN)/prometheus github.com/prometheus/prometheus/cmd/prometheus
	PROMETHEUS=$(BIN)/prometheus go test -tags e2e -v -count=1 -timeout 15m ./e2e -run '^TestMonitoring$$'

# Where the figures, the plots and the page of them go.
BENCH_OUTPUT ?= $(CURDIR)/docs/performance
REPORT = go -C e2e/report build -o $(BIN)/report . && $(BIN)/report $(BENCH_OUTPUT) $(BENCH_OUTPUT).md

# In e2e itself and without a package argument: only so does go test print while it runs. The page is written also after a failure.
.PHONY: bench
bench: cluster install ## what an update costs in place, natively and at the least, into docs/performance.md; RUN=pods for some of it; SIMULATED_NODES=1000 RUN='(crowd|fleet)' for thousands of pods
	@mkdir -p $(BENCH_OUTPUT)
	@measured=0; SIMULATED_NODES='$(SIMULATED_NODES)' BENCH_OUTPUT=$(BENCH_OUTPUT) \
		go -C e2e test -tags e2e,bench -count=1 -timeout 3h -run '^TestBench$$/$(RUN)' || measured=$$?; $(REPORT); exit $$measured

.PHONY: performance
performance: ## write docs/performance.md and its plots from the figures that make bench has left
	@$(REPORT)

OTHER_VERSION := $(CURDIR)/.cluster/former
FROM ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git rev-parse HEAD^)

.PHONY: e2e-upgrade
e2e-upgrade: cluster ## managers of two versions at a time, with updates under way; FROM=REV, by default the last release, or commit
	@rm -rf $(OTHER_VERSION); mkdir -p $(OTHER_VERSION); git archive $(FROM) | tar -x -C $(OTHER_VERSION)
	@$(MAKE) -C $(OTHER_VERSION) --no-print-directory install BIN=$(BIN) KUBECONFIG=$(KUBECONFIG)
	OTHER_VERSION=$(OTHER_VERSION) go test -tags e2e -v -count=1 -timeout 30m ./e2e -run '^TestUpgrade$$'
