// Package version says which build of Stayput this is: what the linker was told, or else what the Go toolchain has recorded.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Set by the linker (manifests/install.mk): -X github.com/stayput/stayput/internal/version.version=v1.2.3. Empty where the linker was told
// nothing.
var version, commit, date string

// unknown stands for what neither the linker nor the toolchain has recorded.
const unknown = "unknown"

// Info is what is known of a build.
type Info struct {
	// Version is a tag, or what git describe makes of a tag.
	Version string
	// Commit is the hash of the commit that was built.
	Commit string
	// Date is the date of that commit, not of the build, so that the same source makes the same binary.
	Date string
	// Go is the version of the toolchain.
	Go string
}

// Get returns what is known of this build.
func Get() Info {
	built, _ := debug.ReadBuildInfo()
	return known(Info{Version: version, Commit: commit, Date: date}, built)
}

// known returns what the linker was told, and what the toolchain has recorded where the linker was told nothing.
func known(told Info, built *debug.BuildInfo) Info {
	if built == nil {
		built = &debug.BuildInfo{}
	}
	recorded := map[string]string{}
	for _, setting := range built.Settings {
		recorded[setting.Key] = setting.Value
	}
	return Info{
		Version: cmp.Or(told.Version, strings.Trim(built.Main.Version, "()"), unknown), // "(devel)"
		Commit:  cmp.Or(told.Commit, recorded["vcs.revision"], unknown),
		Date:    cmp.Or(told.Date, recorded["vcs.time"], unknown),
		Go:      cmp.Or(built.GoVersion, runtime.Version()),
	}
}

// String returns one line for users.
func (i Info) String() string {
	return fmt.Sprintf("stayput %s (commit %s of %s, %s)", i.Version, i.Commit, i.Date, i.Go)
}

// Register adds the metric that says which build a process is.
func Register(registry prometheus.Registerer) error {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "stayput", Name: "build_info",
		Help: "Always 1: the build that runs, by its labels."}, []string{"version", "commit", "goversion"})
	info := Get()
	build.WithLabelValues(info.Version, info.Commit, info.Go).Set(1)
	return registry.Register(build)
}
