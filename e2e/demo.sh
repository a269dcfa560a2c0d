#!/bin/bash
# Shows what Stayput does, on a running cluster with Stayput installed: `make demo` starts both and runs this.
set -euo pipefail

registry=127.0.0.1:5000
rate=100 # requests a second
started=$(date +%s.%N)
scratch=$(mktemp -d)
declare -A measured

namespaces=(shop-in-place shop-native shop-prestop)
declare -A titles=([shop-in-place]='in place' [shop-native]='native' [shop-prestop]='native, preStop')
declare -A names=([image]='set image' [undo]='rollout undo' [chart]='chart label')

say()  { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*" | fold -w 78; "$@" 2>&1 | fold -s -w 78; }
now()  { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

tidy() { kubectl delete namespace "${namespaces[@]}" --ignore-not-found --wait="${1:-false}" >/dev/null; }
leave() {
	unload
	rm -rf "$scratch"
	tidy
}
trap leave EXIT

# manifest LIFECYCLE: prints a typical application. It needs seconds to start, and an init container fetches data before that. The argument
# is the field lifecycle of its container.
manifest() {
	cat <<YAML
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
      volumes: [{name: cache, emptyDir: {}}]
      initContainers:
        - name: fetch
          image: $registry/fill:latest
          imagePullPolicy: Always
          args: [fill, /cache]
          env: [{name: START_DELAY, value: 2s}]
          volumeMounts: [{name: cache, mountPath: /cache}]
      containers:
        - name: app
          image: $registry/app:v1
          env: [{name: START_DELAY, value: 2s}]
          readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
          lifecycle: $1
          volumeMounts: [{name: cache, mountPath: /cache}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
YAML
}

# pods NAMESPACE: prints one row for each pod: name, IP, image, restarts, ready.
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

# each NAMESPACE PATH: prints one field of every pod.
each() { kubectl -n "$1" get pods -l app=web -o jsonpath="{range .items[*]}{$2}{\"\\n\"}{end}" | sort; }
uids() { each "$1" .metadata.uid; }
addresses() { each "$1" .status.podIP; }
fetches() { each "$1" '.status.initContainerStatuses[*].containerID'; }

# new BEFORE AFTER: the number of lines that are only in AFTER.
new() { comm -13 <(echo "$1") <(echo "$2") | grep -c . || true; }

# live NAMESPACE BEGUN: prints the rows that change until the rollout is over.
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

# load NAMESPACE: sends requests to its Service from now on. The nodes are this machine, so Services can be reached from here.
load() {
	local address
	address=$(kubectl -n "$1" get service web -o jsonpath='{.spec.clusterIP}')
	generator $rate "http://$address" "$scratch/requests" &
	loader=$!
	until [ -s "$scratch/requests" ] && [ "$(sent)" -ge $rate ]; do sleep 0.1; done
}

unload() {
	[ -n "${loader:-}" ] || return 0
	kill "$loader" 2>/dev/null && wait "$loader" || true
	rm -f "$scratch/requests"
	loader=
}

sent() { cut -d ' ' -f 1 "$scratch/requests"; }
lost() { cut -d ' ' -f 2 "$scratch/requests"; }

# settles NAMESPACE: waits until the terminating pods are gone, and for the requests that were sent to them.
settles() {
	while pods "$1" | grep -q ' leaving$'; do sleep 0.2; done
	sleep 1
}

# edit NAMESPACE OF COMMAND...: runs the command, shows the pods while they change, and records the cost.
edit() {
	local namespace=$1 of=$2 uids addresses fetches sent lost begun
	shift 2
	uids=$(uids "$namespace") addresses=$(addresses "$namespace") fetches=$(fetches "$namespace") sent=$(sent) lost=$(lost)
	begun=$(now)
	show kubectl -n "$namespace" "$@"
	live "$namespace" "$begun"
	measured[$namespace/$of/seconds]=$(since "$begun")
	show kubectl -n "$namespace" rollout status deployment/web
	settles "$namespace"
	measured[$namespace/$of/lost]="$(($(lost) - lost)) of $(($(sent) - sent))"
	measured[$namespace/$of/pods]=$(new "$uids" "$(uids "$namespace")")
	measured[$namespace/$of/addresses]=$(new "$addresses" "$(addresses "$namespace")")
	measured[$namespace/$of/fetches]=$(new "$fetches" "$(fetches "$namespace")")
}

chart='{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}'

# edits NAMESPACE TITLE: makes the same edits in every namespace.
edits() {
	local namespace=$1
	say "$2: a new image, at $rate requests a second"
	load "$namespace"
	table "$namespace"
	edit "$namespace" image set image deployment/web app=$registry/app:v2
	say "$2: back again"
	edit "$namespace" undo rollout undo deployment/web
	say "$2: a chart bump, which changes no more than a label"
	edit "$namespace" chart patch deployment web --type=merge -p "$chart"
	show kubectl -n "$namespace" rollout history deployment/web
	unload
}

# line FIGURE TITLE OF: prints a figure of each namespace.
line() {
	local namespace
	printf '    %-28s' "$2"
	for namespace in "${namespaces[@]}"; do printf ' %16s' "${measured[$namespace/$3/$1]}"; done
	echo
}

closing() {
	local of namespace
	say "What each edit cost, under $rate requests a second"
	printf '    %-28s' ''
	for namespace in "${namespaces[@]}"; do printf ' %16s' "${titles[$namespace]}"; done
	echo
	for of in image undo chart; do
		printf '  %s\n' "${names[$of]}"
		line seconds 'seconds' $of
		line lost 'requests lost' $of
		line pods 'pods created' $of
		line addresses 'addresses changed' $of
		line fetches 'init containers run again' $of
	done
	printf '\n%s\n%s\n' 'In place, one pod after the other is drained for 2 s before its container restarts;' \
		'natively a second pod starts beside the others, too (maxUnavailable 1, maxSurge 25%).'
	printf '\nThe demonstration took %.0f s.\n' "$(since "$started")"
}

say 'Three namespaces with the same Deployment of 3 pods: one has the label, in one of the others pods have a preStop hook'
tidy true
for namespace in "${namespaces[@]}"; do kubectl create namespace $namespace >/dev/null; done
show kubectl label namespace shop-in-place stayput.dev/update=in-place
for namespace in shop-in-place shop-native; do manifest '{}' | kubectl -n $namespace create -f - >/dev/null; done
manifest '{preStop: {sleep: {seconds: 5}}}' | kubectl -n shop-prestop create -f - >/dev/null
echo 'Each pod has an init container that fills an emptyDir in 2 s; the application needs 2 s more to start.'
for namespace in "${namespaces[@]}"; do
	kubectl -n $namespace rollout status deployment/web --timeout=90s >/dev/null
done

edits shop-in-place 'With the label'
edits shop-native 'Without the label'
edits shop-prestop 'Without the label, with a preStop hook that sleeps 5 s'
closing
