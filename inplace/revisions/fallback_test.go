package revisions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
)

// of returns a workload of that namespace.
func of(namespace, uid string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: namespace, UID: types.UID(uid)}
}

// TestFallbacksAreBounded: the oldest entries of the namespace with the most are removed.
func TestFallbacksAreBounded(t *testing.T) {
	fallbacks, at := revisions.Fallbacks{}, fixture.Start
	add := func(namespace, uid string) {
		at = at.Add(time.Second)
		fallbacks.Add(of(namespace, uid), revisions.Fallback{Hash: "h-" + uid, Code: inplace.CodeFailing}, at)
	}
	fallbacks["old"] = inplace.FormatTime(at) + " h-old " + inplace.CodeFailing // as it was written before namespaces were
	add("shop", "web")
	for i := range revisions.MaxFallbacks + 5 {
		add("crowd", fmt.Sprint("w", i))
	}
	add("bank", "web-2")
	for uid, want := range map[types.UID]bool{"old": true, "web": true, "web-2": true, "w7": false, "w8": true} {
		hash := ""
		if want {
			hash = "h-" + string(uid)
		}
		if got := fallbacks.Of(uid); got.Hash != hash || want && got.Code != inplace.CodeFailing {
			t.Errorf("%s: %+v is left", uid, got)
		}
	}
	if len(fallbacks) != revisions.MaxFallbacks {
		t.Errorf("%d are left", len(fallbacks))
	}
	if fallbacks.Remove("w8"); fallbacks.Of("w8") != (revisions.Fallback{}) || fallbacks.Of("w9").Hash != "h-w9" {
		t.Error("the wrong one was removed")
	}
}

// TestFallbacksFit: with the longest names, all of them fit into a ConfigMap.
func TestFallbacksFit(t *testing.T) {
	fallbacks := revisions.Fallbacks{}
	hash, longest := apps.Template{}.Hash(), strings.Repeat("n", validation.DNS1123LabelMaxLength)
	for i := range revisions.MaxFallbacks {
		fallbacks.Add(of(longest, fmt.Sprintf("%036d", i)), revisions.Fallback{Hash: hash, Code: inplace.CodeRewrittenImage}, fixture.Start)
	}
	text, err := json.Marshal(fallbacks)
	if err != nil || len(text) > 1<<20-64<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestNudgesFail: where writes are refused or fail, and the last nudge is twice as old as it should be.
func TestNudgesFail(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		code string
		ago  time.Duration
		want bool
	}{
		"refused":            {inplace.CodeRefused, 20 * time.Second, true},
		"failing":            {inplace.CodeFailing, time.Hour, true},
		"nudged lately":      {inplace.CodeRefused, 19 * time.Second, false},
		"for another reason": {inplace.CodeStrategy, time.Hour, false},
	} {
		labels := map[string]string{inplace.LabelRenewed: inplace.FormatTime(now.Add(-test.ago))}
		if got := (revisions.Fallback{Code: test.code}).NudgesFail(labels, 10*time.Second, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
