# make release: build image, chart, plugin and checksums of one version; see .ci/release/release.sh.
#
#   DRY_RUN=1   push to the registry at REPOSITORY, by default that of the test cluster, and sign with a new key pair,
#               without a transparency log.
#               Without it: push to ghcr.io/stayput, and sign with the identity of the workflow (.github/workflows/release.yaml)
#   VERSION     a tag such as v1.2.3; in a dry run, a version is invented if the commit has no tag
#   REPOSITORY  the registry and path to which images and charts are pushed

RELEASE_TAG := $(shell git describe --tags --exact-match --match 'v*' 2>/dev/null)
RELEASE_VERSION = $(if $(filter command line environment,$(origin VERSION)),$(VERSION),$(or \
	$(RELEASE_TAG),$(if $(DRY_RUN),v0.0.0-dev.g$(shell git rev-parse --short=12 HEAD))))
RELEASE_TOOLS := $(addprefix $(BIN)/release/,ko crane cosign)
RELEASE_CHART := $(wildcard charts/stayput/Chart.yaml)
REPOSITORY ?= $(if $(DRY_RUN),$(REGISTRY)/release,ghcr.io/stayput)
# What the binary prints as its version. The date is the commit's, so that the same source makes the same binary.
RELEASE_PACKAGE := github.com/stayput/stayput/internal/version
RELEASE_LDFLAGS = -s -w -X $(RELEASE_PACKAGE).version=$(RELEASE_VERSION) -X $(RELEASE_PACKAGE).commit=$(shell git rev-parse HEAD) \
	-X $(RELEASE_PACKAGE).date=$(shell git log -1 --format=%cI)

.PHONY: release
release: release-tools licenses dist ## build, sign and push a release, and pull it back; DRY_RUN=1 into the test cluster's registry
	@VERSION='$(RELEASE_VERSION)' REPOSITORY='$(REPOSITORY)' DRY_RUN='$(DRY_RUN)' LDFLAGS='$(RELEASE_LDFLAGS)' \
		TOOLS='$(BIN)/release' HELM='$(if $(RELEASE_CHART),$(BIN)/helm4)' OUT='$(CURDIR)/dist/release' .ci/release/release.sh

.PHONY: release-tools
release-tools: $(RELEASE_TOOLS) $(if $(RELEASE_CHART),$(BIN)/helm4)

$(RELEASE_TOOLS): .ci/release/go.mod .ci/release/go.sum
	@echo "building $(@F)"
	@go -C .ci/release build -trimpath -buildvcs=false -ldflags '-s -w' -o $@ $$(go -C .ci/release list -f '{{.ImportPath}}' tool | grep '/$(@F)$$')
