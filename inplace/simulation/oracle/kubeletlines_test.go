package simulation

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/controller/deployment"
)

// TestKubeletLines looks up the functions of the kubelet that its model names: each has to be in the file in every release, and in that
// line in the release of go.mod.
func TestKubeletLines(t *testing.T) {
	model, err := os.ReadFile("../model_kubelet_test.go")
	if err != nil {
		t.Fatal(err)
	}
	controller := reflect.ValueOf(deployment.NewDeploymentController).Pointer()
	file, _ := runtime.FuncForPC(controller).FileLine(controller)
	kubernetes, _, _ := strings.Cut(file, "/pkg/controller/")
	named := regexp.MustCompile(`(pkg/kubelet/[\w/]+\.go):(\d+)(?:\n\s*//)? (\w+)`).FindAllStringSubmatch(string(model), -1)
	if len(named) < 20 {
		t.Errorf("the model names %d functions", len(named))
	}
	for _, of := range named {
		file, line, function := of[1], of[2], of[3]
		source, err := os.ReadFile(filepath.Join(kubernetes, file))
		if err != nil {
			t.Fatal(err)
		}
		at := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `\(`).FindIndex(source)
		if at == nil {
			t.Errorf("%s has no function %s", file, function)
			continue
		}
		is := strconv.Itoa(strings.Count(string(source[:at[0]]), "\n") + 1)
		if strings.HasSuffix(kubernetes, "@v1.36.3") && is != line {
			t.Errorf("%s is in line %s of %s, not in %s", function, is, file, line)
		}
	}
}
