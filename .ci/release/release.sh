#!/usr/bin/env bash
# Makes one release: an image for amd64 and arm64 with its SBOM, the chart if there is one, the manifests, and kubectl's plugin. The script
# signs and pushes everything, and pulls it back. `make release` calls it, with the tools that it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '\n== %s\n' "$*"; }
fail() { echo "release: $*" >&2; exit 1; }
crane() { "$TOOLS/crane" "$@"; }
cosign() { "$TOOLS/cosign" "$@"; }

PLATFORMS=(linux/amd64 linux/arm64)
# The plugin is for the platforms that krew.yaml names.
mapfile -t PLUGIN_PLATFORMS < <(sed -n 's|.*/kubectl-stayput_\([a-z]*\)_\([a-z0-9]*\)\.tar\.gz".*|\1/\2|p' .ci/release/krew.yaml)
IMAGE=$REPOSITORY/stayput
CHARTS=$REPOSITORY/charts
WORKFLOW=https://github.com/stayput/stayput/.github/workflows/release.yaml

# What `make licenses` has written: LICENSE, NOTICE, and the full texts of the licences of linked modules. ko copies it into the image.
LEGAL=cmd/stayput/kodata

# The user that Stayput's manifests name, for users who run the image without the manifests.
USER_ID=65532:65532

check() {
	[[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
		fail "the version is '$VERSION': tag the commit with one such as v1.2.3, or say VERSION=v1.2.3 or DRY_RUN=1"
	[[ -n $DRY_RUN || -z $(git status --porcelain --untracked-files=no) ]] || fail "the working tree differs from the commit: commit or stash first"
	[[ -s $LEGAL/THIRD_PARTY_LICENSES ]] || fail "no $LEGAL/THIRD_PARTY_LICENSES: run make licenses, as make release does"
	[[ -z $DRY_RUN ]] || crane catalog "${REPOSITORY%%/*}" >/dev/null 2>&1 ||
		fail "no registry answers at ${REPOSITORY%%/*}: make cluster starts one, or say REPOSITORY=HOST:PORT/NAME"
	rm -rf "$OUT" && mkdir -p "$OUT"
	work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
}

# base pushes an image that has only a user and no files. The binary needs none: it is static, and the cluster's CA comes with each pod.
base() {
	tar --create --file "$work/nothing.tar" --files-from /dev/null
	local platform images=()
	for platform in "${PLATFORMS[@]}"; do
		images+=("$IMAGE:base-${platform#*/}")
		crane append --platform "$platform" --new_layer "$work/nothing.tar" --new_tag "${images[-1]}" >/dev/null 2>&1
		crane mutate "${images[-1]}" --set-platform "$platform" --user "$USER_ID" --tag "${images[-1]}" >/dev/null
	done
	crane index append $(printf -- '--manifest %s ' "${images[@]}") --tag "$IMAGE:base" >/dev/null 2>&1
}

image() {
	say "image $IMAGE:$VERSION"
	base
	KO_DOCKER_REPO=$IMAGE KO_DEFAULTBASEIMAGE=$IMAGE:base KO_CONFIG_PATH=.ci/release SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$TOOLS/ko" build --bare \
		--platform "$(IFS=,; echo "${PLATFORMS[*]}")" --tags "$VERSION" --sbom spdx --sbom-dir "$OUT" --image-refs "$work/refs" \
		--image-label org.opencontainers.image.source=https://github.com/stayput/stayput \
		--image-label org.opencontainers.image.version="$VERSION" --image-label org.opencontainers.image.licenses=Apache-2.0 ./cmd/stayput >"$work/image"
	built=$(<"$work/image")
	echo "$built"
}

# keys sets how to sign. A dry run makes a key pair and uses no transparency log. A release is signed with the identity of the workflow,
# without keys.
keys() {
	signing=(--yes) verifying=(--certificate-identity "$WORKFLOW@refs/tags/$VERSION" --certificate-oidc-issuer https://token.actions.githubusercontent.com)
	[[ -n $DRY_RUN ]] || return 0
	export COSIGN_PASSWORD=
	(cd "$work" && cosign generate-key-pair >/dev/null 2>&1)
	cp "$work/cosign.pub" "$OUT/"
	signing=(--yes --key "$work/cosign.key" --use-signing-config=false --tlog-upload=false)
	verifying=(--key "$work/cosign.pub" --insecure-ignore-tlog=true)
}

# quietly runs a command, and shows its output only if it fails.
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "$1 failed, see above"; }; }

sign() { quietly cosign sign "${signing[@]}" "$1"; }

verify() { quietly cosign verify "${verifying[@]}" "$1"; }

# plain prints --plain-http in a dry run: without that option, Helm uses TLS also for a registry on this machine.
plain() { [[ -z $DRY_RUN ]] || echo --plain-http; }

# chart packages and pushes the chart. Its version has no v, because Helm requires Semantic Versioning.
chart() {
	[[ -n $HELM ]] || { say "no chart: charts/stayput is not there"; return 0; }
	say "chart $CHARTS/stayput:${VERSION#v}"
	quietly "$HELM" package charts/stayput --version "${VERSION#v}" --app-version "$VERSION" --destination "$OUT"
	quietly "$HELM" push "$OUT/stayput-${VERSION#v}.tgz" "oci://$CHARTS" $(plain)
	pushed=$CHARTS/stayput@$(crane digest "$CHARTS/stayput:${VERSION#v}")
	sign "$pushed"
}

# digests names what was pushed by its digest: for users, and for the steps of the workflow that make the provenance.
digests() { printf '%s\n' "$built" ${pushed:+"$pushed"} >"$OUT/DIGESTS"; }

# manifests copies what make dist has rendered, with the image of this release, and the licences of what the image contains.
manifests() {
	sed "s|image: ghcr\.io/stayput/stayput:.*|image: $built|" dist/stayput.yaml >"$OUT/stayput.yaml"
	cp "$LEGAL/THIRD_PARTY_LICENSES" "$OUT/"
	cp charts/stayput/files/rules.yaml "$OUT/stayput-rules.yaml"
	cp charts/stayput/files/dashboard.json "$OUT/stayput-dashboard.json"
}

# plugin makes an archive for each platform, and the manifest by which krew finds the archives.
plugin() {
	say "kubectl plugin"
	local platform
	for platform in "${PLUGIN_PLATFORMS[@]}"; do
		archive "${platform%/*}" "${platform#*/}"
	done
	krew <.ci/release/krew.yaml >"$OUT/stayput.krew.yaml"
}

# krew makes the manifest from the template, as krew-release-bot does. The bot downloads the archives for their checksums; here they are
# in $OUT.
krew() {
	local line url
	while IFS= read -r line; do
		line=${line//'{{ .TagName }}'/$VERSION}
		if [[ $line =~ ^(\ *)\{\{addURIAndSha\ \"(.*)\" ]]; then
			url=${BASH_REMATCH[2]}
			line=$(printf '%suri: %s\n%ssha256: %s' "${BASH_REMATCH[1]}" "$url" "${BASH_REMATCH[1]}" "$(checksum "$OUT/${url##*/}")")
		fi
		echo "$line"
	done
}

checksum() { sha256sum "$1" | cut -d ' ' -f 1; }

archive() {
	local os=$1 arch=$2 folder=$work/plugin-$1-$2 name=kubectl-stayput_$1_$2.tar.gz binary=kubectl-stayput
	[[ $os != windows ]] || binary+=.exe
	mkdir "$folder"
	cp "$LEGAL"/* cmd/kubectl-stayput/kubectl_complete-stayput "$folder/"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "$LDFLAGS" -o "$folder/$binary" ./cmd/kubectl-stayput
	tar --create --gzip --owner 0 --group 0 --numeric-owner --sort name --mtime "@$(git log -1 --format=%ct)" --file "$OUT/$name" --directory "$folder" .
	echo "$name"
}

checksums() {
	(cd "$OUT" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
	local blob=(--bundle "$OUT/SHA256SUMS.sigstore.json" "$OUT/SHA256SUMS")
	quietly cosign sign-blob "${signing[@]}" "${blob[@]}"
}

# pulled pulls everything from where users get it, and checks it.
pulled() {
	say "pulled back"
	local platform sbom
	verify "$built"
	for platform in "${PLATFORMS[@]}"; do
		crane config --platform "$platform" "$IMAGE:$VERSION" | grep -q "\"architecture\":\"${platform#*/}\"" || fail "$IMAGE:$VERSION is not for $platform"
		crane config --platform "$platform" "$IMAGE:$VERSION" | grep -q "\"User\":\"$USER_ID\"" || fail "$IMAGE:$VERSION does not run as $USER_ID"
		crane export --platform "$platform" "$IMAGE:$VERSION" - | tar --list --absolute-names >"$work/files"
		grep -q 'ko-app/stayput$' "$work/files" || fail "$IMAGE:$VERSION for $platform has no binary: $(<"$work/files")"
		grep -q 'var/run/ko/THIRD_PARTY_LICENSES$' "$work/files" || fail "$IMAGE:$VERSION for $platform has no licences: $(<"$work/files")"
		echo "$IMAGE:$VERSION for $platform: $(grep -c . "$work/files") files"
	done
	sbom=$IMAGE:$(crane digest "$IMAGE:$VERSION" | tr : -).sbom
	crane export "$sbom" - >"$work/sbom" 2>/dev/null || crane blob "$IMAGE@$(crane manifest "$sbom" | grep -o 'sha256:[0-9a-f]*' | tail -1)" >"$work/sbom"
	grep -q SPDXRef "$work/sbom" || fail "$sbom is no SPDX document"
	echo "$sbom"
	[[ -z $HELM ]] || pulled_chart
	quietly cosign verify-blob "${verifying[@]}" --bundle "$OUT/SHA256SUMS.sigstore.json" "$OUT/SHA256SUMS"
	(cd "$OUT" && sha256sum --check --quiet SHA256SUMS)
	echo "signatures and checksums hold"
	runs
}

pulled_chart() {
	verify "$CHARTS/stayput@$(crane digest "$CHARTS/stayput:${VERSION#v}")"
	mkdir "$work/chart"
	quietly "$HELM" pull "oci://$CHARTS/stayput" --version "${VERSION#v}" --destination "$work/chart" $(plain)
	cmp "$work/chart/stayput-${VERSION#v}.tgz" "$OUT/stayput-${VERSION#v}.tgz" || fail "the chart that was pulled is not the one that was pushed"
	echo "$CHARTS/stayput:${VERSION#v}"
}

# runs starts what this machine can run: the binary of the image and the plugin of the archive.
runs() {
	local arch binary
	arch=$(go env GOARCH)
	[[ $(go env GOOS) = linux ]] || return 0
	mkdir "$work/root"
	crane export --platform "linux/$arch" "$IMAGE:$VERSION" - | tar --extract --directory "$work/root"
	quietly "$work/root/ko-app/stayput" --help
	tar --extract --gzip --file "$OUT/kubectl-stayput_linux_$arch.tar.gz" --directory "$work/root"
	cmp "$work/root/THIRD_PARTY_LICENSES" "$work/root/var/run/ko/THIRD_PARTY_LICENSES" || fail "archive and image have different licences"
	binary=$("$work/root/kubectl-stayput" version) && [[ $binary = *"$VERSION"* ]] || fail "the plugin says that it is '$binary', not $VERSION"
	echo "$binary"
}

check
keys
image
say "signature"
sign "$built"
chart
digests
manifests
plugin
checksums
pulled
say "$OUT"
ls "$OUT"
