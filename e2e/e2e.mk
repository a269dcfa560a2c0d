# The end-to-end suite and the demonstration. Included by the top Makefile.
# These targets break components on purpose, or need images of the test cluster. So they never use the cluster of the caller's KUBECONFIG.
e2e demo recording e2e-chart e2e-removal e2e-killed e2e-faults e2e-soak e2e-systems e2e-operators e2e-lws e2e-reloader e2e-serving e2e-monitoring e2e-upgrade bench: override KUBECONFIG := $(CURDIR)/.cluster/kubeconfig

# Every build tag of e2e, for vet and lint. What runs by hand or at night has a tag of its own, so that make e2e does not compile it.
E2E_TAGS := e2e,bench,chart,faults,monitoring,operators,reloader,removal,soak,systems,upgrade

# A theme or THEME/SCENARIO, as a regular expression.
RUN ?= .
# The maximum number of parallel scenarios. With more the processors are so busy that webhooks time out, and native writes bypass them.
SCENARIOS := $(shell expr 3 '*' $$(nproc))

.PHONY: plugin
plugin: ## build kubectl's plugin, and the program that completes its arguments, into .cluster/bin
	@go build -o $(BIN)/kubectl-stayput ./cmd/kubectl-stayput
	@install cmd/kubectl-stayput/kubectl_complete-stayput $(BIN)/

.PHONY: e2e
e2e: cluster install plugin $(if $(SHORT),,devices-build) ## the end-to-end suite; RUN=undo/half for some scenarios, SHORT=1 without scenarios that take long
	go test -tags e2e -count=1 -timeout 75m -parallel $(SCENARIOS) $(if $(SHORT),-short) ./e2e -run '/$(RUN)'

.PHONY: demo
demo: cluster install ## what Stayput does, and its cost beside a native rollout, in two and a half minutes
	@go build -o $(BIN)/generator ./e2e/load/generator
	@$(BIN)/cluster push fill:latest $(BIN)/images/app
	@PATH="$(BIN):$$PATH" e2e/demo.sh

.PHONY: e2e-serving
e2e-serving: cluster install ## updates under load, which must not lose a request; TIMES=3 in a row
	go test -tags e2e $(if $(SHORT),-short) -v -count=$(or $(TIMES),1) -timeout 60m ./e2e -run '^TestServing$$/$(RUN)'

.PHONY: e2e-chart
e2e-chart: cluster helm image uninstall ## install, upgrade and uninstall the Helm chart with Helm 3 and 4, also without cert-manager; RUN=helm4 for one of them
	go test -tags e2e,chart -v -count=1 -timeout 60m ./e2e -run '^(TestChart|TestSubchart)$$/$(RUN)'

.PHONY: e2e-removal
e2e-removal: cluster image dist ## delete all objects of Stayput in random order in the middle of updates; TIMES=50 for more than 5 orders, SEED=1 to repeat one
	TIMES=$(TIMES) SEED=$(SEED) go test -tags e2e,removal -v -count=1 -timeout 120m ./e2e -run '^TestRemoved$$'

.PHONY: e2e-killed
e2e-killed: cluster install ## kill every manager for good in the middle of updates; KILLS=500 for more than 20 updates, SEED=1 to repeat one
	KILLS=$(KILLS) SEED=$(SEED) go test -tags e2e,removal -v -count=1 -timeout 120m ./e2e -run '^TestKilled$$'

.PHONY: e2e-faults
e2e-faults: cluster install ## one fault after another in the middle of the same updates in place and natively, into docs/explanation/reliability.md; RUN=etcd for some
	PAGE=$(CURDIR)/docs/explanation/reliability.md go test -tags e2e,faults -v -count=1 -timeout 150m ./e2e -run '^TestFaults$$/$(RUN)'

# go test prints while it runs only in the folder e2e and without a package argument.
.PHONY: e2e-soak
e2e-soak: SIMULATED_NODES := 10
e2e-soak: cluster install ## a fleet is updated 1,080 times in six hours, while managers are killed and nodes go away; or in MINUTES=120
	SIMULATED_NODES=$(SIMULATED_NODES) MINUTES=$(MINUTES) go -C e2e test -tags e2e,bench,soak -v -count=1 -timeout 12h -run '^TestSoak$$'

# name=package of the Go module e2e/systems. What they require compiles for minutes, so make test does not run this.
SYSTEMS := etcd=go.etcd.io/etcd/server/v3 nats=github.com/nats-io/nats-server/v2 \
	attacher=github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher csi=./csi member=./member writer=./writer

.PHONY: systems-build
systems-build:
	@mkdir -p $(BIN)/systems
	@for system in $(SYSTEMS); do echo "building $${system%%=*}"; \
	  (cd e2e/systems && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $(BIN)/systems/$${system%%=*} $${system#*=}) || exit 1; \
	done

# A device plugin, and the driver by which Kubernetes tests dynamic resource allocation.
.PHONY: devices-build
devices-build:
	@mkdir -p $(BIN)/systems
	@cd e2e/systems && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $(BIN)/systems/device ./device
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $(CONFORMANCE_MODFILE)) -ldflags '$(STRIP)' -o $(BIN)/systems/dra \
		k8s.io/kubernetes/test/e2e/dra/test-driver

.PHONY: e2e-systems
e2e-systems: cluster install systems-build ## etcd and NATS on attached volumes, under acknowledged writes, in place beside native; UPDATES=10 for more than 3, NATIVE=3 for fewer natively, RUN=etcd for one system
	UPDATES=$(UPDATES) NATIVE=$(NATIVE) go test -tags e2e,systems -v -count=1 -timeout 180m ./e2e -run '^TestSystems$$/$(RUN)'

# Reloader's module is not among those that its users import, and it compiles for minutes, so the caller builds it.
.PHONY: e2e-reloader
e2e-reloader: cluster install ## Reloader itself with --reload-strategy=annotations: RELOADER=/path/to/reloader, built from its source
	@[ -x '$(RELOADER)' ] || { echo 'make e2e-reloader RELOADER=...: the path of the program built from https://github.com/stakater/Reloader' >&2; exit 1; }
	RELOADER='$(RELOADER)' go test -tags e2e,reloader -v -count=1 -timeout 15m ./e2e -run '^TestReloader$$'

PROMETHEUS_OPERATOR := github.com/prometheus-operator/prometheus-operator

.PHONY: e2e-operators
e2e-operators: cluster install ## the Prometheus operator itself, built from its module: an upgrade in place
	@mkdir -p $(BIN)/operators
	cd e2e/operators && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $(BIN)/operators/ ./server \
	  $(PROMETHEUS_OPERATOR)/cmd/operator $(PROMETHEUS_OPERATOR)/cmd/prometheus-config-reloader
	CRDS=$$(go -C e2e/operators list -m -f '{{.Dir}}' $(PROMETHEUS_OPERATOR))/example/prometheus-operator-crd go test -tags e2e,operators -v -count=1 -timeout 20m ./e2e -run '^TestPrometheusOperator$$'

.PHONY: e2e-lws
e2e-lws: cluster install ## LeaderWorkerSet itself: LWS=/path/to/lws, a folder with its source and bin/manager
	@[ -x '$(LWS)/bin/manager' ] || { echo 'make e2e-lws LWS=...: the folder of https://github.com/kubernetes-sigs/lws with its program bin/manager' >&2; exit 1; }
	LWS='$(LWS)' go test -tags e2e,operators -v -count=1 -timeout 20m ./e2e -run '^TestLeaderWorkerSet$$'

.PHONY: test-systems
test-systems: ## what e2e-systems uses: the CSI driver with csi-test, and the writer with etcd and NATS; needs root, and no cluster
	go -C e2e/systems test -count=1 -timeout 30m ./...

# No test runs this: docs/explanation/tested.md says what should differ from the test cluster.
kind kind-down: override KUBECONFIG := $(CURDIR)/.cluster/kind.kubeconfig

.PHONY: kind
kind: ## with Docker and kind: a cluster, Stayput and one update in place
	@mkdir -p $(dir $(KUBECONFIG))
	@e2e/kind.sh

.PHONY: kind-down
kind-down: ## remove the cluster of make kind
	kind delete cluster --name $${KIND_NAME:-stayput}

# Prometheus is built without its web page, which needs npm, and without its service discovery, which needs the SDKs of all clouds.
.PHONY: e2e-monitoring
e2e-monitoring: cluster install ## every expression of charts/stayput/files on a real Prometheus that scrapes the managers
	go -C .ci/prometheus build -tags remove_all_sd -o $(BIN)/prometheus github.com/prometheus/prometheus/cmd/prometheus
	PROMETHEUS=$(BIN)/prometheus go test -tags e2e,monitoring -v -count=1 -timeout 15m ./e2e -run '^TestMonitoring$$'

# The folder of the figures and the plots, and the name of the page.
BENCH_OUTPUT ?= $(CURDIR)/docs/explanation/performance
# README gets its table only from the figures of this repository.
REPORT = go -C e2e/report build -o $(BIN)/report . && \
	$(BIN)/report $(BENCH_OUTPUT) $(BENCH_OUTPUT).md $(if $(filter $(CURDIR)/docs/%,$(BENCH_OUTPUT)),$(CURDIR)/README.md)

# go test prints while it runs only in the folder e2e and without a package argument. The page is written also after a failure.
.PHONY: bench
bench: cluster install ## the cost of an update in place, natively and at the least, into docs/explanation/performance.md; RUN=pods for some benches; SIMULATED_NODES=1000 RUN='(crowd|fleet)' for thousands of pods; SIMULATED_NODES=100 WORKLOADS=300 RUN=workloads for many Deployments at once, and RUN=limits within limits; ROUNDS=1 for fewer updates
	@mkdir -p $(BENCH_OUTPUT)
	@measured=0; SIMULATED_NODES='$(SIMULATED_NODES)' WORKLOADS='$(WORKLOADS)' RESTING='$(RESTING)' LOAD='$(LOAD)' ROUNDS='$(ROUNDS)' BENCH_OUTPUT=$(BENCH_OUTPUT) \
		go -C e2e test -tags e2e,bench -count=1 -timeout 3h -run '^TestBench$$/$(RUN)' || measured=$$?; $(REPORT); exit $$measured

.PHONY: performance
performance: ## write docs/explanation/performance.md with its plots, costs.md, and the table of README from the figures of make bench
	@$(REPORT)

.PHONY: recording
recording: cluster install plugin ## record updates in place on the test cluster, into docs/recording.svg and docs/watch.svg
	@go build -o $(BIN)/recording ./e2e/recording
	@PATH="$(BIN):$$PATH" $(BIN)/recording docs

PROMETHEUS_URL ?= http://127.0.0.1:9090

.PHONY: dashboard
dashboard: MINUTES ?= 10
dashboard: ## draw the dashboard into docs/dashboard.svg, with the last MINUTES=10 of a Prometheus at PROMETHEUS_URL that scraped the managers meanwhile
	@go -C e2e/report build -o $(BIN)/report .
	@$(BIN)/report dashboard charts/stayput/files/dashboard.json $(PROMETHEUS_URL) $(MINUTES) docs/dashboard.svg

OTHER_VERSION := $(CURDIR)/.cluster/former
FROM ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git rev-parse HEAD^)

.PHONY: e2e-upgrade
e2e-upgrade: cluster ## managers of two versions at a time, with updates in progress; FROM=REV, by default the last release, or commit
	@rm -rf $(OTHER_VERSION); mkdir -p $(OTHER_VERSION); git archive $(FROM) | tar -x -C $(OTHER_VERSION)
	@$(MAKE) -C $(OTHER_VERSION) --no-print-directory install BIN=$(BIN) KUBECONFIG=$(KUBECONFIG)
	OTHER_VERSION=$(OTHER_VERSION) go test -tags e2e,upgrade -v -count=1 -timeout 30m ./e2e -run '^TestUpgrade$$'

# The neighbours' own code comes from the Go module proxy and compiles for minutes, so make test does not run this.
NEIGHBOURS := e2e/neighbours $(patsubst %/go.mod,%,$(wildcard e2e/neighbours/*/go.mod))

.PHONY: neighbours
neighbours: ## what docs/how-to says about Argo CD, Flux, Kyverno and others, against their own code; needs no cluster
	@for module in $(NEIGHBOURS); do (set -x; go -C $$module test -count=1 ./...); done
