# The simulation with the native controllers of Kubernetes itself. Included by the Makefile, after e2e/cluster/cluster.mk.
ORACLE := inplace/simulation/oracle
ORACLE_OVERLAY := $(CURDIR)/.cluster/oracle.json
# Go's runtime without chance in maps, so that a seed replays exactly: controllers go through maps.
ORACLE_RAND := $(CURDIR)/.cluster/oracle-rand.go
ORACLE_TESTS := Simulation|(Daemon)?BudgetSimulation|DaemonSimulation|StatefulSets.*|ModelsOfDeployments|ModelOfDaemonSets|KubeletLines|SeedsReplay
SEEDS ?= 150

# -overlay puts the files of the simulation beside those of the oracle.
.PHONY: oracle
oracle: ## the simulation with native controllers instead of models of them; SEEDS=150, KUBERNETES_VERSIONS for some releases; needs no cluster
	@mkdir -p .cluster
	@sed '/^func maps_rand/,/^}/s/return rand()/return 0/; s/state.Init([*]seed)/state.Init([32]byte{})/' "$$(go env GOROOT)/src/runtime/rand.go" > $(ORACLE_RAND)
	@printf '{"Replace":{%s,"%s":"%s"}}' "$$(ls inplace/simulation/*_test.go | sed 's|.*/\(.*\)|"\1":"../\1"|' | paste -sd,)" \
		"$$(go env GOROOT)/src/runtime/rand.go" $(ORACLE_RAND) > $(ORACLE_OVERLAY)
	@for version in $(KUBERNETES_VERSIONS); do \
		modfile=$$(cd $(ORACLE) && ls go-$$version.mod 2> /dev/null || echo go.mod); echo "Kubernetes $$version"; \
		( cd $(ORACLE) && export STAYPUT_SEEDS=$(SEEDS) && $(subst go build,go test -vet=off -timeout 60m,$(CLUSTER_BUILD)) \
			-modfile=$$modfile -overlay $(ORACLE_OVERLAY) -run '^Test($(ORACLE_TESTS))$$' . ) || exit 1; \
	done
