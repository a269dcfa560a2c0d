# Kubernetes' own tests, natively and in place. Included by the Makefile, after e2e/cluster/cluster.mk and e2e/e2e.mk.
CONFORMANCE := e2e/conformance
CONFORMANCE_BIN := $(BIN)/conformance/$(KUBERNETES_VERSION)
CONFORMANCE_MODFILE := $(or $(wildcard $(CONFORMANCE)/go-$(KUBERNETES_VERSION).mod),$(CONFORMANCE)/go.mod)
CONFORMANCE_KINDS := (Deployment|ReplicaSet|Daemon set|ControllerRevision)
CONFORMANCE_REPORTS := $(CURDIR)/.cluster/conformance
conformance_build = cd $(CONFORMANCE) && $(CLUSTER_ENV)

conformance: override KUBECONFIG := $(CURDIR)/.cluster/kubeconfig

.PHONY: conformance
conformance: conformance-build cluster install conformance-images ## Kubernetes' own tests of what is updated in place, natively and in place; RUN=rollover for some
	@$(CONFORMANCE_BIN)/upstream.test --provider skeleton --test.run TestNamespaces
	@mkdir -p $(CONFORMANCE_REPORTS); rm -f $(CONFORMANCE_REPORTS)/*
	@$(call conformance_run,native) || true
	@$(call conformance_run,in-place) --namespace-label stayput.dev/update=in-place || true
	@$(CONFORMANCE_BIN)/verdict -kubernetes $(KUBERNETES_VERSION) $(if $(filter-out .,$(RUN)),-some) \
		$(addprefix $(CONFORMANCE_REPORTS)/,native.json in-place.json)

# The output of the tests goes to a file; the user reads the table of the command verdict. That command also decides about tests that fail.
conformance_run = echo "running $(1), see $(CONFORMANCE_REPORTS)/$(1).log" && $(conformance_test) --provider skeleton \
	--kubectl-path $(BIN)/kubectl --ginkgo.focus '\[sig-apps\] $(CONFORMANCE_KINDS) .*$(RUN)' --ginkgo.label-filter 'Feature: isEmpty' \
	--ginkgo.no-color --ginkgo.timeout 2h --test.run TestUpstream --ginkgo.json-report $(CONFORMANCE_REPORTS)/$(1).json > $(CONFORMANCE_REPORTS)/$(1).log 2>&1
conformance_test = KUBE_TEST_REPO_LIST=$(CONFORMANCE)/repositories.yaml $(CONFORMANCE_BIN)/upstream.test

.PHONY: conformance-images
conformance-images: $(BIN)/standins $(CONFORMANCE_BIN)/agnhost $(CONFORMANCE_BIN)/upstream.test
	@$(BIN)/standins $(CONFORMANCE_BIN)/agnhost "$$(command -v busybox)" \
		$$($(conformance_test) --list-images | grep -E '^$(REGISTRY)/(.*/)?(agnhost|httpd|nginx|pause):')

.PHONY: conformance-build
conformance-build: conformance-packages $(BIN)/standins $(addprefix $(CONFORMANCE_BIN)/,agnhost upstream.test verdict)

.PHONY: conformance-packages
conformance-packages: kubernetes-release
	@$(CLUSTER)/packages.sh busybox

$(CONFORMANCE_BIN)/agnhost: $(CONFORMANCE_MODFILE)
	@echo "building agnhost of Kubernetes $(KUBERNETES_VERSION)"
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ k8s.io/kubernetes/test/images/agnhost

$(CONFORMANCE_BIN)/upstream.test: $(CONFORMANCE_MODFILE) $(wildcard $(CONFORMANCE)/*_test.go) $(call go_files,$(CONFORMANCE)/verdict)
	@echo "building the tests of Kubernetes $(KUBERNETES_VERSION)"
	@$(conformance_build) $(subst go build,go test -c -vet=off,$(CLUSTER_BUILD)) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ .

$(CONFORMANCE_BIN)/verdict: $(CONFORMANCE_MODFILE) $(CONFORMANCE)/main.go $(call go_files,$(CONFORMANCE)/verdict)
	@$(conformance_build) $(CLUSTER_BUILD) -modfile=$(notdir $<) -ldflags '$(STRIP)' -o $@ .

$(BIN)/standins: $(cluster_module) $(CLUSTER)/standins/main.go $(call go_files,$(CLUSTER)/registry)
	@echo building $(@F)
	@cd $(CLUSTER) && $(CLUSTER_ENV) $(CLUSTER_BUILD) -ldflags '$(STRIP)' -o $@ ./standins

.PHONY: test-admission
test-admission: ## whether the API server of each Kubernetes release accepts Stayput's policies and webhooks; needs no cluster
	@for modfile in $(notdir $(wildcard $(CONFORMANCE)/*.mod)); do \
		echo "$$(sed -n 's/.*\(k8s.io.kubernetes v[0-9.]*\)$$/\1/p' $(CONFORMANCE)/$$modfile)"; \
		( $(conformance_build) $(subst go build,go test -vet=off,$(CLUSTER_BUILD)) -modfile=$$modfile ./admission ) || exit 1; \
	done

.PHONY: test-autoscaler
test-autoscaler: kubernetes-release ## how Kubernetes' own controller of HorizontalPodAutoscalers treats containers that restart; needs no cluster
	@$(conformance_build) $(subst go build,go test -vet=off,$(CLUSTER_BUILD)) -modfile=$(notdir $(CONFORMANCE_MODFILE)) ./autoscaler
