# The test cluster (e2e/cluster). It has its own Go modules, so that the product's go.mod does not affect it.
# Included by the Makefile, which sets BIN.

CLUSTER := e2e/cluster
SHARE := $(BIN)/../share

# The releases with a go.mod. go.mod itself has the default release. A cluster that is up keeps its release unless KUBERNETES_VERSION names
# another.
kubernetes_in = $(sort $(shell sed -n 's/.*k8s\.io\/kubernetes \(v[0-9.]*\)$$/\1/p' $(1)))
KUBERNETES_VERSIONS := $(call kubernetes_in,$(CLUSTER)/kubernetes/*.mod)
KUBERNETES_UP := $(if $(wildcard $(BIN)/../kubeconfig),$(patsubst kubernetes-%,%,$(notdir $(realpath $(BIN)/kubernetes))))
KUBERNETES_VERSION ?= $(or $(KUBERNETES_UP),$(call kubernetes_in,$(CLUSTER)/kubernetes/go.mod))
KUBERNETES_MODFILE := $(or $(wildcard $(CLUSTER)/kubernetes/go-$(KUBERNETES_VERSION).mod),$(CLUSTER)/kubernetes/go.mod)

CLUSTER_UP = $(BIN)/cluster up --kubernetes-version $(KUBERNETES_VERSION) \
	$(if $(NODES),--nodes $(NODES)) $(if $(SIMULATED_NODES),--simulated-nodes $(SIMULATED_NODES))
# The compiler is faster if it rarely collects garbage.
CLUSTER_BUILD := GOGC=800 go build -buildvcs=false
STRIP := -s -w

version_parts := $(subst ., ,$(patsubst v%,%,$(KUBERNETES_VERSION)))
version_flags = -X $(1).gitVersion=$(KUBERNETES_VERSION) -X $(1).gitMajor=$(word 1,$(version_parts)) \
	-X $(1).gitMinor=$(word 2,$(version_parts)) -X $(1).gitTreeState=clean

# All binaries except that of Kubernetes, of which there may be several releases.
NODE_BINARIES := $(addprefix $(BIN)/,containerd containerd-shim-runc-v2)
CNI_BINARIES := $(addprefix $(BIN)/cni/,bridge host-local loopback portmap)
IMAGE_BINARIES := $(addprefix $(BIN)/images/,app pause)
KUBERNETES_BINARIES = $(BIN)/kubernetes-$(KUBERNETES_VERSION) $(BIN)/kubectl-$(KUBERNETES_VERSION)
CLUSTER_BINARIES := $(addprefix $(BIN)/,cluster cert-manager coredns kwok runc) $(NODE_BINARIES) $(CNI_BINARIES) $(IMAGE_BINARIES)

.PHONY: cluster
cluster: cluster-build ## start the components of the test cluster that do not run (KUBERNETES_VERSION, NODES=3, SIMULATED_NODES=0)
	@$(CLUSTER_UP)

.PHONY: cluster-down
cluster-down: ## stop the test cluster and leave nothing behind
	@[ ! -x $(BIN)/cluster ] || $(BIN)/cluster down

.PHONY: cluster-logs
cluster-logs: ## the errors in the test cluster's logs
	@$(BIN)/cluster logs

.PHONY: test-cluster
test-cluster: cluster-build ## the tests of the test cluster itself; SHORT=1 without what takes a minute
	cd $(CLUSTER) && go test -timeout 5m ./images/... ./internal/... ./registry ./simulated
	cd $(CLUSTER) && go test -count=1 -timeout 10m $(if $(SHORT),-short) ./lifecycle
	$(CLUSTER_UP)
	cd $(CLUSTER) && go test -count=1 -timeout 10m -parallel 4 $(if $(SHORT),-short) ./test

.PHONY: cluster-build
cluster-build: kubernetes-release cluster-packages $(CLUSTER_BINARIES) $(KUBERNETES_BINARIES) $(SHARE)/cert-manager $(SHARE)/simulated ## build the test cluster into .cluster

.PHONY: kubernetes-release
kubernetes-release:
ifeq ($(filter $(KUBERNETES_VERSION),$(KUBERNETES_VERSIONS)),)
	@echo "KUBERNETES_VERSION=$(KUBERNETES_VERSION) is not one of the releases there are: $(KUBERNETES_VERSIONS)" >&2; exit 1
endif

.PHONY: cluster-packages
cluster-packages: kubernetes-release
	@$(CLUSTER)/packages.sh

# A binary depends only on its module's files: go.mod fixes everything else.
cluster_module := $(addprefix $(CLUSTER)/,go.mod go.sum)
node_module := $(addprefix $(CLUSTER)/node/,go.mod go.sum)
go_files = $(shell find $(1) -name '*.go' -not -name '*_test.go')

$(CLUSTER_BINARIES) $(KUBERNETES_BINARIES): | cluster-packages

kubernetes_build = cd $(CLUSTER)/kubernetes && $(CLUSTER_BUILD) -modfile=$(notdir $<) -o $@ \
	-ldflags '$(STRIP) $(call version_flags,k8s.io/component-base/version) $(call version_flags,k8s.io/client-go/pkg/version)'

$(BIN)/kubernetes-$(KUBERNETES_VERSION): $(KUBERNETES_MODFILE) $(KUBERNETES_MODFILE:.mod=.sum) $(CLUSTER)/kubernetes/main.go
	@echo "building Kubernetes $(KUBERNETES_VERSION): the first time this takes minutes"
	@$(kubernetes_build) .

# It follows that of Kubernetes, which has compiled what both need.
$(BIN)/kubectl-$(KUBERNETES_VERSION): $(KUBERNETES_MODFILE) $(KUBERNETES_MODFILE:.mod=.sum) $(CLUSTER)/kubernetes/kubectl/main.go \
		| $(BIN)/kubernetes-$(KUBERNETES_VERSION)
	@echo building kubectl
	@$(kubernetes_build) ./kubectl

# The launcher links it and the components when the cluster starts.
$(BIN)/kubectl: | $(BIN)/kubectl-$(KUBERNETES_VERSION)
	@ln -sf kubectl-$(KUBERNETES_VERSION) $@

$(BIN)/cluster: $(cluster_module) $(CLUSTER)/main_linux.go $(call go_files,$(CLUSTER)/internal $(CLUSTER)/registry)
	@echo building $(@F)
	@cd $(CLUSTER) && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $@ .

$(BIN)/cert-manager: $(cluster_module) $(call go_files,$(CLUSTER)/certmanager)
	@echo building $(@F)
	@cd $(CLUSTER) && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $@ ./certmanager

$(BIN)/coredns: $(cluster_module) $(call go_files,$(CLUSTER)/coredns)
	@echo building $(@F)
	@cd $(CLUSTER) && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $@ ./coredns

# kwok 0.8 asks for all pods again whenever its watch ends. Where there are thousands, the API server ends a watch that is so far behind, so
# kwok would do nothing else (kubernetes#129197). So a watch goes on where the one before ended.
$(BIN)/kwok: $(cluster_module) $(CLUSTER)/cluster.mk
	@echo building $(@F)
	@cd $(CLUSTER) && go mod download sigs.k8s.io/kwok && copy=$$(mktemp -d) && trap "rm -r $$copy" EXIT && \
	cp -r "$$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)" $$copy/kwok && chmod -R u+w $$copy/kwok && \
	sed -i 's/if !o.EnableListPager ||/if !opts.AllowWatchBookmarks \&\& !o.EnableListPager ||/' $$copy/kwok/pkg/utils/informer/event.go && \
	grep -q AllowWatchBookmarks $$copy/kwok/pkg/utils/informer/event.go && \
	cp go.mod go.sum $$copy && go mod edit -replace sigs.k8s.io/kwok=$$copy/kwok $$copy/go.mod && \
	$(CLUSTER_BUILD) -modfile=$$copy/go.mod -ldflags '$(STRIP)' -o $@ sigs.k8s.io/kwok/cmd/kwok

$(IMAGE_BINARIES) &: $(cluster_module) $(call go_files,$(CLUSTER)/images)
	@echo building $(notdir $(IMAGE_BINARIES))
	@cd $(CLUSTER) && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $(BIN)/images/ ./images/app ./images/pause

$(NODE_BINARIES) &: $(node_module)
	@echo building $(notdir $(NODE_BINARIES))
	@cd $(CLUSTER)/node && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -tags no_btrfs,no_zfs,no_devmapper -o $(BIN)/ \
		$(addprefix github.com/containerd/containerd/v2/cmd/,$(notdir $(NODE_BINARIES)))

$(CNI_BINARIES) &: $(node_module)
	@echo building $(notdir $(CNI_BINARIES))
	@cd $(CLUSTER)/node && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $(BIN)/cni/ \
		$(addprefix github.com/containernetworking/plugins/plugins/,main/bridge ipam/host-local main/loopback meta/portmap)

# Restricted namespaces require the seccomp profile RuntimeDefault, which needs libseccomp and so cgo.
$(BIN)/runc: $(node_module)
	@echo building $(@F)
	@cd $(CLUSTER)/node && CGO_ENABLED=1 $(CLUSTER_BUILD) -ldflags '$(STRIP)' -tags seccomp -o $@ github.com/opencontainers/runc

# cert-manager's CRDs are in its module. The build of cert-manager has downloaded it.
$(SHARE)/cert-manager: $(BIN)/cert-manager
	@rm -rf $@ && mkdir -p $@
	@cd $(CLUSTER) && cp "$$(go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)"/deploy/crds/*.yaml $@

$(SHARE)/simulated: $(wildcard $(CLUSTER)/simulated/*.yaml)
	@rm -rf $@ && mkdir -p $@
	@cp $^ $@
