//go:build e2e

package e2e

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// An event as the API server of Kubernetes 1.36 writes it.
const anEvent = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete",` +
	`"requestURI":"/api/v1/namespaces/shop/pods/web/status?fieldManager=stayput","verb":"patch",` +
	`"user":{"username":"system:serviceaccount:stayput-system:stayput"},` +
	`"userAgent":"stayput/v0.0.0 (linux/amd64) kubernetes/$Format/stayput",` +
	`"objectRef":{"resource":"pods","namespace":"shop","name":"web","apiVersion":"v1","subresource":"status"},` +
	`"responseStatus":{"metadata":{},"code":200},` +
	`"requestReceivedTimestamp":"2026-11-22T17:00:00.123456Z","stageTimestamp":"2026-11-22T17:00:00.223456Z"}`

func TestUseIsReadFromTheAuditLog(t *testing.T) {
	from := time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)
	for what, test := range map[string]struct {
		log   string
		since time.Time
		want  map[right]bool
	}{
		"a subresource": {anEvent, from, map[right]bool{{"", "pods/status", "patch"}: true}},
		"a group": {strings.Replace(anEvent, `"resource":"pods"`, `"apiGroup":"apps","resource":"deployments"`, 1), from,
			map[right]bool{{"apps", "deployments/status", "patch"}: true}},
		"two lines": {anEvent + "\n" + strings.Replace(anEvent, `,"subresource":"status"`, "", 1), from,
			map[right]bool{{"", "pods/status", "patch"}: true, {"", "pods", "patch"}: true}},
		"refused":             {strings.Replace(anEvent, `"code":200`, `"code":403`, 1), from, nil},
		"before":              {anEvent, from.Add(time.Minute), nil},
		"by the suite":        {strings.Replace(anEvent, `"userAgent":"stayput/`, `"userAgent":"e2e","was":"`, 1), from, nil},
		"not about an object": {strings.Replace(anEvent, `"objectRef"`, `"wasRef"`, 1), from, nil},
	} {
		t.Run(what, func(t *testing.T) {
			used := map[right]bool{}
			if err := noteUse(strings.NewReader(test.log), test.since, used); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(used, test.want) {
				t.Errorf("used %v, want %v", used, test.want)
			}
		})
	}
	if err := noteUse(strings.NewReader("no JSON"), from, map[right]bool{}); err == nil {
		t.Error("a log that cannot be read was taken for one of no use")
	}
}
