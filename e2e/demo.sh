#!/bin/bash
# What Stayput does, shown on a running cluster with Stayput installed: `make demo` starts both and runs this.
set -euo pipefail

registry=127.0.0.1:5000
started=$(date +%s.%N)
declare -A seconds created

say()  { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*" | fold -w 78; "$@" 2>&1 | fold -s -w 78; }
now()  { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

tidy() { kubectl delete namespace shop-in-place shop-native --ignore-not-found --wait="${1:-false}" >/dev/null; }
trap tidy EXIT

manifest() {
	cat <<EOF
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxUnavailable: 1}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, helm.sh/chart: web-1.0.0}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: app
          image: $registry/app:v1
          readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
EOF
}

# pods prints one row for each pod: name, IP, image, restarts, ready.
pods() {
	kubectl -n "$1" get pods -l app=web --sort-by=.metadata.name -o go-template='{{range .items}}{{
		$ready := "no"}}{{range .status.conditions}}{{if and (eq .type "Ready") (eq .status "True")}}{{$ready = "yes"}}{{end}}{{end}}{{
		if .metadata.deletionTimestamp}}{{$ready = "leaving"}}{{end}}{{
		.metadata.name}} {{or .status.podIP "-"}} {{(index .spec.containers 0).image}} {{
		range .status.containerStatuses}}{{.restartCount}}{{else}}0{{end}} {{$ready}}{{"\n"}}{{end}}' |
		sed "s#$registry/##"
}

row() { printf '  %5s  %-24s %-14s %-7s %8s  %s\n' "$@"; }

table() {
	row '' NAME IP IMAGE RESTARTS READY
	while read -r line; do row '' $line; done < <(pods "$1")
}

uids() { kubectl -n "$1" get pods -l app=web -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }

# live prints the rows that change until the rollout is over.
live() {
	local namespace=$1 begun=$2 last
	last=$(pods "$namespace")
	row SEC NAME IP IMAGE RESTARTS READY
	while true; do
		local over=no rows
		rolled_out "$namespace" && over=yes
		rows=$(pods "$namespace")
		while read -r line; do
			[ -z "$line" ] || grep -qxF "$line" <<<"$last" || row "$(since "$begun")" $line
		done <<<"$rows"
		last=$rows
		[ $over = no ] || break
		sleep 0.3
	done
}

rolled_out() {
	kubectl -n "$1" rollout status deployment/web --watch=false 2>/dev/null | grep -q 'successfully rolled out'
}

# edit NAMESPACE COLUMN COMMAND...: runs it, shows the pods while they change, and notes seconds and pods created.
edit() {
	local namespace=$1 column=$2 before begun
	shift 2
	before=$(uids "$namespace")
	begun=$(now)
	show kubectl -n "$namespace" "$@"
	live "$namespace" "$begun"
	seconds[$namespace/$column]=$(since "$begun")
	show kubectl -n "$namespace" rollout status deployment/web
	created[$namespace/$column]=$(comm -13 <(echo "$before") <(uids "$namespace") | grep -c . || true)
}

chart='{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}'

# edits are the same in both namespaces.
edits() {
	local namespace=$1
	say "$2: a new image"
	table "$namespace"
	edit "$namespace" image set image deployment/web app=$registry/app:v2
	show kubectl -n "$namespace" rollout history deployment/web
	say "$2: back again"
	edit "$namespace" undo rollout undo deployment/web
	say "$2: a chart bump, which changes no more than a label"
	edit "$namespace" chart patch deployment web --type=merge -p "$chart"
	table "$namespace"
}

closing() {
	local of
	say 'Seconds, and pods created'
	printf '  %-16s %18s %22s\n' '' 'in place' 'native (no label)'
	for of in image undo chart; do
		printf '  %-16s %8s s %3s pods %12s s %3s pods\n' "${names[$of]}" \
			"${seconds[shop-in-place/$of]}" "${created[shop-in-place/$of]}" \
			"${seconds[shop-native/$of]}" "${created[shop-native/$of]}"
	done
	printf '\n%s\n' 'In place, each pod in turn is drained for 2 s before its container restarts.'
	printf '\nThe demonstration took %.0f s.\n' "$(since "$started")"
}
declare -A names=([image]='set image' [undo]='rollout undo' [chart]='chart label')

say 'Two namespaces with the same Deployment of 3 pods; one has the label'
tidy true
kubectl create namespace shop-native >/dev/null
kubectl create namespace shop-in-place >/dev/null
show kubectl label namespace shop-in-place stayput.dev/update=in-place
for namespace in shop-in-place shop-native; do manifest | kubectl -n $namespace create -f - >/dev/null; done
for namespace in shop-in-place shop-native; do
	kubectl -n $namespace rollout status deployment/web --timeout=60s >/dev/null
done

edits shop-in-place 'With the label'
edits shop-native 'Without the label'
closing
