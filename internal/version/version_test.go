package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestKnown(t *testing.T) {
	recorded := &debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
	}}
	for name, test := range map[string]struct {
		told  Info
		built *debug.BuildInfo
		want  Info
	}{
		"the linker comes first": {Info{Version: "v1.2.3", Commit: "def", Date: "2027"}, recorded, Info{"v1.2.3", "def", "2027", "go1.99"}},
		"then the toolchain":     {Info{}, recorded, Info{"v0.1.0", "abc", "2026-01-02T03:04:05Z", "go1.99"}},
		"a build of no version": {Info{}, &debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: "(devel)"}},
			Info{"devel", "unknown", "unknown", "go1.99"}},
		"nothing recorded": {Info{}, nil, Info{"unknown", "unknown", "unknown", runtime.Version()}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := known(test.told, test.built); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestMetricSaysWhichBuild(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := Register(registry); err != nil {
		t.Fatal(err)
	}
	info := Get()
	want := `
		# HELP stayput_build_info Always 1: the build that runs, by its labels.
		# TYPE stayput_build_info gauge
		stayput_build_info{commit="` + info.Commit + `",goversion="` + info.Go + `",version="` + info.Version + `"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
