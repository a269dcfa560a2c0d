#!/bin/sh
# Checks that the packages of the distribution that the cluster needs are installed. It installs missing packages if it can (as root on
# Debian or Ubuntu). Otherwise it prints which ones to install. With the argument busybox that package is needed, too.
set -eu

if [ "$(uname)" != Linux ]; then
	echo "the test cluster runs real nodes and so needs Linux, and this is $(uname)" >&2
	exit 1
fi

missing=""
need() { # PACKAGE COMMAND...: the package is installed if the command succeeds
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
need nftables command -v nft
need conntrack command -v conntrack
need gcc command -v "${CC:-gcc}"
need pkg-config command -v pkg-config
need libseccomp-dev pkg-config --exists libseccomp
static_busybox() { busybox true && ! ldd "$(command -v busybox)"; }
[ "${1:-}" != busybox ] || need busybox-static static_busybox
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "the test cluster needs these packages, please install them (names as in Debian):$missing" >&2
	exit 1
fi
echo "installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
