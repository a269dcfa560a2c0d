# Kubernetes' own tests, natively and in place. Included by the Makefile, after e2e/cluster/cluster.mk and e2e/e2e.mk.
CONFORMANCE := e2e/conformance
CONFORMANCE_BIN := $(BIN)/conformance/$(KUBERNETES_VERSION)
CONFORMANCE_MODFILE := $(or $(wildcard $(CONFORMANCE)/go-$(KUBERNETES_VERSION).mod),$(CONFORMANCE)/go.mod)
# The tests of each kind are a file upstream. A test runs if both its file and its name match, so that RUN=StatefulSet is a kind.
CONFORMANCE_FILES := /e2e/apps/(deployment|replica_set|daemon_set|statefulset|controller_revision)\.go$$
CONFORMANCE_REPORTS := $(CURDIR)/.cluster/conformance
# Tests mostly wait, so as many run at a time. PROCESSES=1 runs one after the other.
PROCESSES ?= 3
conformance_build = cd $(CONFORMANCE) &&

conformance: override KUBECONFIG := $(CURDIR)/.cluster/kubeconfig

.PHONY: conformance
conformance: conformance-build cluster install conformance-images ## Kubernetes' own tests of what is updated in place, natively and in place; RUN=rollover or RUN=StatefulSet for some
	@$(CONFORMANCE_BIN)/upstream.test --provider skeleton --test.run '^Test(Namespaces|Labels)'
	@mkdir -p $(CONFORMANCE_REPORTS); rm -f $(CONFORMANCE_REPORTS)/*
	@$(conformance_storage); $(call conformance_run,native) || true; \
		$(call conformance_run,in-place) $(addprefix --namespace-label ,$(CONFORMANCE_LABELS)) || true
	@$(CONFORMANCE_BIN)/verdict $(if $(filter-out .,$(RUN)),-some) \
		$(addprefix $(CONFORMANCE_REPORTS)/,native.json in-place.json)

CONFORMANCE_LABELS := stayput.dev/update=in-place stayput.dev/kinds=deployments.daemonsets.statefulsets

# The StorageClass goes when the tests have ended: a default StorageClass would give the claims of the end-to-end suite other volumes.
conformance_storage = trap '$(BIN)/kubectl delete -f $(CONFORMANCE)/storage.yaml > /dev/null' EXIT; \
	$(BIN)/kubectl apply -f $(CONFORMANCE)/storage.yaml > /dev/null

# The output of the tests goes to a file; the user reads the table of the command verdict. That command also decides about tests that fail.
# In 1.37 the test of an application, which runs its image, has no label Feature.
conformance_run = echo "running $(1), see $(CONFORMANCE_REPORTS)/$(1).log"; KUBE_TEST_REPO_LIST=$(CONFORMANCE_REPOSITORIES) \
	$(CONFORMANCE_BIN)/ginkgo run --procs $(PROCESSES) --focus-file '$(CONFORMANCE_FILES)' --focus '$(RUN)' \
	--label-filter 'Feature: isEmpty' --skip 'Deploy clustered applications' --no-color --timeout 2h \
	--json-report $(1).json --output-dir $(CONFORMANCE_REPORTS) $(CONFORMANCE_BIN)/upstream.test > $(CONFORMANCE_REPORTS)/$(1).log 2>&1 \
	-- --provider skeleton --kubectl-path $(BIN)/kubectl --test.run TestUpstream
CONFORMANCE_REPOSITORIES := $(CURDIR)/$(CONFORMANCE)/repositories.yaml

.PHONY: conformance-images
conformance-images: $(BIN)/standins $(CONFORMANCE_BIN)/agnhost $(CONFORMANCE_BIN)/upstream.test
	@$(BIN)/standins $(CONFORMANCE_BIN)/agnhost "$$(command -v busybox)" \
		$$(KUBE_TEST_REPO_LIST=$(CONFORMANCE_REPOSITORIES) $(CONFORMANCE_BIN)/upstream.test --list-images | \
		grep -E '^$(REGISTRY)/(.*/)?(agnhost|busybox|httpd|nginx|pause):')

.PHONY: conformance-build
conformance-build: conformance-packages $(BIN)/standins $(addprefix $(CONFORMANCE_BIN)/,agnhost ginkgo upstream.test verdict)

.PHONY: conformance-packages
conformance-packages: kubernetes-release
	@$(CLUSTER)/packages.sh busybox

$(CONFORMANCE_BIN)/agnhost: $(CONFORMANCE_MODFILE)
	@echo "building agnhost of Kubernetes $(KUBERNETES_VERSION)"
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ k8s.io/kubernetes/test/images/agnhost

# It runs tests in several processes.
$(CONFORMANCE_BIN)/ginkgo: $(CONFORMANCE_MODFILE)
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ github.com/onsi/ginkgo/v2/ginkgo

$(CONFORMANCE_BIN)/upstream.test: $(CONFORMANCE_MODFILE) $(wildcard $(CONFORMANCE)/*_test.go) $(call go_files,$(CONFORMANCE)/verdict)
	@echo "building the tests of Kubernetes $(KUBERNETES_VERSION)"
	@$(conformance_build) $(subst go build,go test -c -vet=off,$(CLUSTER_BUILD)) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ .

$(CONFORMANCE_BIN)/verdict: $(CONFORMANCE_MODFILE) $(CONFORMANCE)/main.go $(call go_files,$(CONFORMANCE)/verdict)
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ .

$(BIN)/standins: $(cluster_module) $(CLUSTER)/standins/main.go $(call go_files,$(CLUSTER)/registry)
	@echo building $(@F)
	@cd $(CLUSTER) && $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $@ ./standins

.PHONY: test-admission test-controllers
test-admission: dist ## whether the API server of each Kubernetes release accepts Stayput's policies and webhooks; needs no cluster
	$(call with_each_release,./admission)
test-controllers: ## whether native controllers of each Kubernetes release do what their models in the simulation are tested against; needs no cluster
	$(call with_each_release,./controllers)

with_each_release = @for modfile in $(notdir $(wildcard $(CONFORMANCE)/*.mod)); do \
		echo "$$(sed -n 's/.*\(k8s.io.kubernetes v[0-9.]*\)$$/\1/p' $(CONFORMANCE)/$$modfile)"; \
		( $(conformance_build) $(subst go build,go test -vet=off,$(CLUSTER_BUILD)) -modfile=$$modfile $(1) ) || exit 1; \
	done

.PHONY: test-autoscaler
test-autoscaler: kubernetes-release ## how Kubernetes' own controller of HorizontalPodAutoscalers treats containers that restart; needs no cluster
	@$(conformance_build) $(subst go build,go test -vet=off,$(CLUSTER_BUILD)) -modfile=$(notdir $(CONFORMANCE_MODFILE)) ./autoscaler
