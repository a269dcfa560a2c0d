#!/usr/bin/env bash
# Stayput on kind, for users with Docker: `make kind`. docs/explanation/tested.md says what of it is tested.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${KIND_NAME:=stayput}" "${KIND_IMAGE:=}" "${KUBECONFIG:?is the file to write the kubeconfig to}"
# The version of the test cluster (e2e/cluster/go.mod).
cert_manager=$(sed -n 's|^\s*github.com/cert-manager/cert-manager \(v[0-9.]*\)$|\1|p' e2e/cluster/go.mod)

say()  { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { echo "\$ $*"; "$@"; }
uids() { kubectl -n shop get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }

needed() {
	local tool
	for tool in docker kind kubectl go make; do
		command -v "$tool" >/dev/null || { echo "kind.sh: $tool is missing: install it first" >&2; exit 1; }
	done
}

cluster() {
	kind get clusters 2>/dev/null | grep -qx "$KIND_NAME" && { kind export kubeconfig --name "$KIND_NAME"; return; }
	kind create cluster --name "$KIND_NAME" ${KIND_IMAGE:+--image "$KIND_IMAGE"} --wait 3m --config - <<-EOF
		kind: Cluster
		apiVersion: kind.x-k8s.io/v1alpha4
		nodes: [{role: control-plane}, {role: worker}, {role: worker}]
	EOF
}

certificates() {
	kubectl apply -f "https://github.com/cert-manager/cert-manager/releases/download/$cert_manager/cert-manager.yaml" >/dev/null
	kubectl -n cert-manager wait deployment --all --for=condition=Available --timeout=3m
}

# stayput builds the image from this clone and loads it onto the nodes, because there is no registry.
stayput() {
	local folder image
	folder=$(mktemp -d)
	CGO_ENABLED=0 GOOS=linux GOARCH=$(docker version --format '{{.Server.Arch}}') go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$folder/app" ./cmd/stayput
	printf 'FROM scratch\nCOPY app /app\nUSER 65532:65532\nENTRYPOINT ["/app"]\n' >"$folder/Dockerfile"
	# The tag is a hash of the content, so that only a different build rolls out.
	image=stayput.local/stayput:dev-$(sha256sum "$folder/app" | cut -c 1-12)
	docker build --quiet --tag "$image" "$folder"
	rm -r "$folder"
	kind load docker-image --name "$KIND_NAME" "$image"
	make install IMAGE="$image" KUBECTL=kubectl
}

try() {
	kubectl create namespace shop --dry-run=client -o yaml | kubectl apply -f -
	show kubectl label namespace shop stayput.dev/update=in-place --overwrite
	kubectl -n shop get deployment web >/dev/null 2>&1 || show kubectl -n shop create deployment web --image nginx:1.28-alpine --replicas 3
	show kubectl -n shop rollout status deployment/web --timeout=5m
	local before next=nginx:1.29-alpine
	before=$(uids)
	[[ $(kubectl -n shop get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}') != "$next" ]] || next=nginx:1.28-alpine
	say "An update in place"
	show kubectl -n shop set image deployment/web "nginx=$next"
	show kubectl -n shop rollout status deployment/web --timeout=5m
	show kubectl -n shop get pods -o wide
	[[ $(uids) = "$before" ]] || { echo "kind.sh: the pods are others than before: kubectl -n shop describe deployment web says why" >&2; exit 1; }
	say "The same pods as before. The cluster stays: export KUBECONFIG=$KUBECONFIG; make kind-down removes it."
}

needed
say "Cluster"
cluster
say "cert-manager $cert_manager"
certificates
say "Stayput"
stayput
say "A namespace with the label"
try
