# make image, install, uninstall and dist: build Stayput, and install it into the cluster of $(KUBECONFIG).
#
#   IMAGE           install this image instead of building one
#   KO_DOCKER_REPO  a registry: `make image` builds for linux/amd64 and linux/arm64 with ko and pushes there, instead of
#                   building for this machine and pushing to the test cluster's registry
#   OVERLAY         what to install: manifests/base, manifests/overlays/own-issuer, or a folder of your own that is based on them

KUBECTL ?= $(firstword $(wildcard $(BIN)/kubectl) kubectl)
OVERLAY ?= manifests/base
REGISTRY := 127.0.0.1:5000
# The image that manifests/base names. `make install` replaces it with the image that it has built.
RELEASED := ghcr.io/stayput/stayput:v0.1.0
# This file has the reference of the image that was built last.
BUILT := $(BIN)/images/stayput.image
KO_DEFAULTBASEIMAGE ?= gcr.io/distroless/static-debian12:nonroot
# Version, commit and date of the build, for `stayput version`. Outside of a git repository the binary says that it does not know them. The
# date is the commit's, so that the same source makes the same binary.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
BUILD := github.com/stayput/stayput/internal/version
LDFLAGS = -s -w -X $(BUILD).version=$(VERSION) -X $(BUILD).commit=$(shell git rev-parse HEAD 2>/dev/null) \
	-X $(BUILD).date=$(shell git log -1 --format=%cI 2>/dev/null)
KO := KO_DEFAULTBASEIMAGE=$(KO_DEFAULTBASEIMAGE) go run github.com/google/ko@v0.19.1

STAYPUT := $(KUBECTL) --namespace stayput-system
ADMISSION := mutatingwebhookconfiguration/stayput validatingwebhookconfiguration/stayput
INSTALLED := $(STAYPUT) get deployment stayput >/dev/null 2>&1
ISSUING := certificates.cert-manager.io issuers.cert-manager.io

.PHONY: image
image: $(if $(KO_DOCKER_REPO),licenses) ## build Stayput's image; push it to the test cluster, or to KO_DOCKER_REPO
	@mkdir -p $(dir $(BUILT))
ifdef KO_DOCKER_REPO
	@$(KO) build --ldflags '$(LDFLAGS)' --bare --platform linux/amd64,linux/arm64 ./cmd/stayput > $(BUILT)
else
	@# The tag is a hash of the binary, so another binary causes a rollout, and the same binary does not.
	@binary=$(BIN)/images/stayput; \
	GOOS=linux go build -buildvcs=false -ldflags '$(LDFLAGS)' -o $$binary ./cmd/stayput; \
	tag=dev-$$(sha256sum $$binary | cut -c 1-12); \
	$(BIN)/cluster push stayput:$$tag $$binary; \
	echo $(REGISTRY)/stayput:$$tag > $(BUILT)
endif
	@echo "image: $$(cat $(BUILT))"

.PHONY: install
install: install-check $(if $(IMAGE),,image) ## install Stayput into the cluster of KUBECONFIG and wait until it works
	@image='$(IMAGE)'; $(KUBECTL) kustomize $(OVERLAY) \
		| sed "s|image: $(RELEASED)$$|image: $${image:-$$(cat $(BUILT))}|" \
		| $(KUBECTL) apply -f -
	@$(STAYPUT) rollout status deployment/stayput --timeout=180s
	@for i in 0 1 2; do $(KUBECTL) wait $(ADMISSION) --for="jsonpath={.webhooks[$$i].clientConfig.caBundle}" --timeout=60s >/dev/null; done
	@# Until a manager leads, updates are native.
	@$(STAYPUT) wait lease/stayput --for="jsonpath={.spec.holderIdentity}" --timeout=60s >/dev/null
	@echo "Stayput is installed. Label a namespace: $(notdir $(KUBECTL)) label namespace NAME stayput.dev/update=in-place"

.PHONY: install-check
install-check:
	@$(KUBECTL) get --raw /readyz >/dev/null || { echo "No cluster answers at $$KUBECONFIG; make cluster starts one." >&2; exit 1; }
	@$(KUBECTL) get crd $(ISSUING) >/dev/null 2>&1 || \
		{ echo "cert-manager is missing in this cluster: install it first, https://cert-manager.io/docs/installation/" >&2; exit 1; }

# `stayput uninstall` removes things in the right order. After it, no write is held, no webhook is called, and the rest may be deleted in
# any order.
.PHONY: uninstall
uninstall: ## let every update fall back to the native controllers, then remove Stayput
	@if $(INSTALLED); then $(MAKE) --no-print-directory uninstall-job; fi
	@$(KUBECTL) delete -f manifests/uninstall/job.yaml --ignore-not-found
	@$(KUBECTL) kustomize $(OVERLAY) | $(KUBECTL) delete --ignore-not-found --timeout=180s -f -

.PHONY: uninstall-job
uninstall-job:
	@image=$$($(STAYPUT) get deployment stayput -o jsonpath='{.spec.template.spec.containers[0].image}'); \
	args=$$($(STAYPUT) get deployment stayput -o jsonpath='{.spec.template.spec.containers[0].args}' | sed 's/"manager"/"uninstall"/'); \
	$(STAYPUT) delete job stayput-uninstall --ignore-not-found; \
	sed "s|image: .*|image: $$image|; s|args: .*|args: $$args|" manifests/uninstall/job.yaml | $(KUBECTL) apply -f -; \
	$(STAYPUT) wait job stayput-uninstall --for=condition=Complete --timeout=300s || \
		{ $(STAYPUT) logs job/stayput-uninstall >&2; $(KUBECTL) delete clusterrolebinding stayput-uninstall >/dev/null; echo "not every update could fall back: see above, then run make uninstall again" >&2; exit 1; }

ifeq ($(shell command -v $(KUBECTL)),)
# The machine has no kubectl, so make uses the test cluster's kubectl.
dist verify-manifests: KUBECTL := $(BIN)/kubectl
dist: | $(BIN)/kubectl
endif

.PHONY: dist
dist: ## render what kubectl installs: dist/stayput.yaml
	@mkdir -p dist
	@{ echo "# Generated by make dist from manifests/base. It needs cert-manager."; \
		$(KUBECTL) kustomize manifests/base | sed "s|image: $(RELEASED)$$|image: $(or $(IMAGE),$(RELEASED))|"; } > dist/stayput.yaml

CHART := charts/stayput
HELMS := $(BIN)/helm3 $(BIN)/helm4
RENDERED := $(BIN)/../rendered

# Labels and annotations that are about Helm stay out.
.PHONY: manifests
manifests: $(BIN)/helm4 ## write manifests/base and manifests/uninstall, for kubectl, from the Helm chart
	@rm -rf $(RENDERED) && $(BIN)/helm4 template stayput $(CHART) --namespace stayput-system --skip-tests --output-dir $(RENDERED) > /dev/null
	@for file in $(RENDERED)/stayput/templates/*.yaml; do name=$${file##*/}; \
		to=manifests/base/$$name; [ $$name != uninstall.yaml ] || to=manifests/uninstall/job.yaml; \
		{ echo "# Rendered by make manifests from $(CHART)/templates/$$name."; \
		sed -E -e 1d -e '/^$$/d' -e '/^# Source: /d' -e '/^ +(app.kubernetes.io\/(managed-by|instance|version)|helm.sh\/chart): /d' \
			-e '/^  annotations:$$/{N;/helm.sh\/hook/{N;N;d}}' $$file; } > $$to; done

.PHONY: helm
helm: $(HELMS)

$(HELMS): $(BIN)/helm%: .ci/helm%/go.mod .ci/helm%/go.sum
	@echo "building Helm $*: the first time this takes minutes"
	@go -C .ci/helm$* build -buildvcs=false -ldflags '-s -w' -o $@ helm.sh/helm/v$*/cmd/helm
