package revisions_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestFallbacksAreBounded: the oldest entries are removed.
func TestFallbacksAreBounded(t *testing.T) {
	fallbacks := revisions.Fallbacks{}
	for i := range revisions.MaxFallbacks + 5 {
		fallbacks.Add(types.UID(fmt.Sprint("w", i)), revisions.Fallback{Hash: fmt.Sprint("h", i), Code: inplace.CodeFailing},
			fixture.Start.Add(time.Duration(i)*time.Second))
	}
	if len(fallbacks) != revisions.MaxFallbacks || fallbacks.Of("w4") != (revisions.Fallback{}) ||
		fallbacks.Of("w5") != (revisions.Fallback{Hash: "h5", Code: inplace.CodeFailing}) {
		t.Errorf("%d are left: w4 %+v, w5 %+v", len(fallbacks), fallbacks.Of("w4"), fallbacks.Of("w5"))
	}
	if fallbacks.Remove("w5"); fallbacks.Of("w5") != (revisions.Fallback{}) || fallbacks.Of("w6").Hash != "h6" {
		t.Error("the wrong one was removed")
	}
}
