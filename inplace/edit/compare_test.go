package edit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/internal/sample"
)

func TestSameTemplateKnowsNewerFields(t *testing.T) {
	for _, path := range []string{"/newer", "/spec/newer", "/spec/containers/0/newer", "/spec/volumes/0/emptyDir/newer", "/metadata/newer"} {
		if apps.SameTemplate(edited(t), edited(t, edits{path: `{"a": null}`})) {
			t.Errorf("%s makes no difference", path)
		}
		if !apps.SameTemplate(edited(t, edits{path: `{"a": null}`}), edited(t, edits{path: "{}"})) {
			t.Errorf("a null in %s makes a difference", path)
		}
	}
}

func BenchmarkSameTemplate(b *testing.B) {
	template, err := apps.ParseTemplate([]byte(sample.Template))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		apps.SameTemplate(template, template)
	}
}

// edits are JSON values to set at JSON pointers. The parents must exist. An empty value removes the field.
type edits map[string]string

// edited returns the base template with the edits.
func edited(t *testing.T, all ...edits) apps.Template {
	t.Helper()
	tree := decoded(t, sample.Template)
	for _, edits := range all {
		for _, path := range slices.Sorted(maps.Keys(edits)) {
			setAt(t, tree, path, edits[path])
		}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	template, err := apps.ParseTemplate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func decoded(t *testing.T, raw string) any {
	t.Helper()
	var tree any
	if err := utiljson.Unmarshal([]byte(raw), &tree); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return tree
}

func setAt(t *testing.T, tree any, path, raw string) {
	t.Helper()
	keys := strings.Split(path, "/")[1:]
	for i, key := range keys {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		last := i == len(keys)-1
		switch node := tree.(type) {
		case map[string]any:
			switch {
			case last && raw == "":
				delete(node, key)
			case last:
				node[key] = decoded(t, raw)
			}
			tree = node[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil {
				t.Fatal(err)
			}
			if last {
				node[index] = decoded(t, raw)
			}
			tree = node[index]
		default:
			t.Fatalf("%s: no parent", path)
		}
	}
}

const (
	appBefore   = `{"name": "app", "image": "app:1"}`
	appAfter    = `{"name": "app", "image": "app:2"}`
	proxyBefore = `{"name": "proxy", "image": "proxy:1"}`
	readsLabel  = `[{"name": "V", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['version']"}}}]`
	readsNote   = `[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['note']"}}}]`
	readsHash   = `[{"name": "H", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['pod-template-hash']"}}}]`
	readsRev    = `[{"name": "H", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['controller-revision-hash']"}}}]`
	probe       = `{"httpGet": {"path": "/", "port": 80}}`
	setupBefore = `{"name": "setup", "image": "setup:1", "resources": {}}`
	sideAfter   = `{"name": "side", "image": "side:2", "restartPolicy": "Always", "resources": {}}`
	newImage    = "/spec/containers/0/image"
	sideImage   = "/spec/initContainers/1/image"
	version     = "/metadata/labels/version"
	cpu         = "/spec/containers/0/resources/limits/cpu"
	renews      = `[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]`

	restartsTwice = "the resizePolicy of container app asks for a restart when its cpu changes, and it also restarts for another change: " +
		"it would restart twice"
)

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		base, before, after edits // base applies to both sides
		rules               inplace.Rules
		want                string
		paths               []string
	}{
		"nothing": {want: "no change"},

		// Changes that can be made in place.
		"image": {
			after: edits{newImage: `"app:2"`},
			want:  "in place: restarts app",
		},
		"two images": {
			after: edits{newImage: `"app:2"`, "/spec/containers/1/image": `"proxy:2"`},
			want:  "in place: restarts app, proxy",
		},
		"label changed":          {after: edits{version: `"2"`}, want: "in place: no restart"},
		"label added":            {after: edits{"/metadata/labels/helm.sh~1chart": `"web-2"`}, want: "in place: no restart"},
		"label with empty value": {after: edits{"/metadata/labels/new": `""`}, want: "in place: no restart"},
		"label removed":          {after: edits{version: ""}, want: "in place: no restart"},
		"all labels removed":     {after: edits{"/metadata/labels": ""}, want: "in place: no restart"},
		"image and label":        {after: edits{newImage: `"app:2"`, version: `"2"`}, want: "in place: restarts app"},
		"allowed annotation": {after: edits{"/metadata/annotations/note": `"b"`}, rules: inplace.Rules{Annotations: []string{"note"}},
			want: "in place: no restart"},
		"allowed annotation goes": {after: edits{"/metadata/annotations": ""}, rules: inplace.Rules{Annotations: []string{"note"}},
			want: "in place: no restart"},
		"allowed by prefix": {after: edits{"/metadata/annotations/example.com~1note": `"b"`},
			rules: inplace.Rules{Annotations: []string{"example.com/*"}}, want: "in place: no restart"},
		"allowed annotation is new": {before: edits{"/metadata/annotations": ""}, rules: inplace.Rules{Annotations: []string{"note"}},
			want: "in place: no restart"},

		"toleration added":             {base: tolerating(gpu), after: tolerating(gpu, batch), want: "in place: no restart"},
		"first toleration":             {after: tolerating(gpu), want: "in place: no restart"},
		"tolerations added in between": {before: tolerating(gpu, batch), after: tolerating(batch, spot, gpu, spot), want: "in place: no restart"},
		"toleration and image":         {after: with(tolerating(gpu), newImage, `"app:2"`), want: "in place: restarts app"},

		// Changes that make no difference.
		"hash label": {before: edits{"/metadata/labels/pod-template-hash": `"abc"`}, want: "no change"},
		"only hash label": {before: edits{"/metadata/labels": `{"pod-template-hash": "abc"}`}, after: edits{"/metadata/labels": ""},
			want: "no change"},
		"null": {after: edits{"/spec/nodeSelector": "null", "/spec/containers/0/command": "null", "/spec/affinity": "null"},
			want: "no change"},
		"empty list":       {after: edits{"/spec/tolerations": "[]", "/spec/containers/0/args": "[]"}, want: "no change"},
		"empty map":        {after: edits{"/spec/nodeSelector": "{}"}, want: "no change"},
		"empty struct":     {after: edits{"/spec/containers/1/resources": ""}, want: "no change"},
		"timestamp":        {after: edits{"/metadata/creationTimestamp": ""}, want: "no change"},
		"quantity":         {after: edits{"/spec/containers/0/resources/limits": `{"cpu": "1000m", "memory": "1024Mi"}`}, want: "no change"},
		"zero":             {after: edits{"/spec/hostNetwork": "false", "/spec/nodeName": `""`}, want: "no change"},
		"unknown null":     {after: edits{"/spec/newer": "null", "/spec/containers/0/newer": "[]"}, want: "no change"},
		"unknown the same": {base: edits{"/spec/newer": `{"a": [1]}`}, after: edits{newImage: `"app:2"`}, want: "in place: restarts app"},

		// Changes that only new pods can take.
		"env": {
			after: edits{"/spec/containers/0/env/0/value": `"2"`},
			want:  "recreate: /spec/containers/0/env/0/value changed",
			paths: []string{"/spec/containers/0/env/0/value"},
		},
		"env and image": {
			after: edits{newImage: `"app:2"`, "/spec/containers/0/env/0/value": `"2"`},
			want:  "recreate: /spec/containers/0/env/0/value changed",
		},
		"env longer": {after: edits{"/spec/containers/0/env": `[{"name": "A", "value": "1"}, {"name": "B"}]`},
			want: "recreate: /spec/containers/0/env changed"},
		"env new": {after: edits{"/spec/containers/1/env": `[{"name": "B"}]`}, want: "recreate: /spec/containers/1/env added"},
		"env reordered": {
			base:  edits{"/spec/containers/0/env": `[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]`},
			after: edits{"/spec/containers/0/env": `[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}, {"name": "C", "value": "3"}]`},
			want:  "recreate: /spec/containers/0/env reordered", paths: []string{"/spec/containers/0/env"},
		},
		"env gone": {after: edits{"/spec/containers/0/env": ""}, want: "recreate: /spec/containers/0/env removed"},
		"ports": {after: edits{"/spec/containers/0/ports/0/containerPort": "81"},
			want: "recreate: /spec/containers/0/ports/0/containerPort changed"},
		"resources": {after: edits{"/spec/containers/0/resources/limits/cpu": `"1001m"`},
			want: "recreate: cpu of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize " +
				"says whether it needs a restart"},
		"resource at zero": {after: edits{"/spec/containers/0/resources/limits/x": `"0"`},
			want: "recreate: /spec/containers/0/resources/limits/x added"},
		"pull policy": {after: edits{"/spec/containers/0/imagePullPolicy": `"Always"`},
			want: "recreate: /spec/containers/0/imagePullPolicy changed"},
		"grace period": {after: edits{"/spec/terminationGracePeriodSeconds": "0"},
			want: "recreate: /spec/terminationGracePeriodSeconds changed"},
		"grace explicit 0": {before: edits{"/spec/terminationGracePeriodSeconds": ""}, after: edits{"/spec/terminationGracePeriodSeconds": "0"},
			want: "recreate: /spec/terminationGracePeriodSeconds added"},
		"empty object is not absent": {after: edits{"/spec/securityContext": ""}, want: "recreate: /spec/securityContext removed"},
		"empty dir":                  {after: edits{"/spec/volumes/0": `{"name": "tmp"}`}, want: "recreate: /spec/volumes/0/emptyDir removed"},
		"volume source": {after: edits{"/spec/volumes/1/configMap/name": `"conf-2"`},
			want: "recreate: /spec/volumes/1/configMap/name changed"},
		"unknown field":  {after: edits{"/spec/newer": "{}"}, want: "recreate: /spec/newer added"},
		"unknown scalar": {after: edits{"/spec/containers/0/newer": "false"}, want: "recreate: /spec/containers/0/newer added"},
		"unknown list that becomes an object": {base: edits{"/spec/newer": `[1]`}, after: edits{"/spec/newer": `{"a": 1}`},
			want: "recreate: /spec/newer changed"},
		"unknown changed": {base: edits{"/spec/newer": `{"a": 1}`}, after: edits{"/spec/newer/a": "2"},
			want: "recreate: /spec/newer/a changed"},
		"ephemeral claim": {
			base: edits{"/spec/volumes/0": `{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": null},
				"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}`},
			before: edits{"/spec/volumes/0/ephemeral/volumeClaimTemplate/spec/resources/requests/storage": `"1024Mi"`},
			after:  edits{"/spec/volumes/0/ephemeral/volumeClaimTemplate/spec/accessModes/0": `"ReadWriteMany"`},
			want:   "recreate: /spec/volumes/0/ephemeral/volumeClaimTemplate/spec/accessModes/0 changed",
		},

		// Tolerations that are not only added.
		"toleration removed": {before: tolerating(gpu, batch), after: tolerating(gpu), want: "recreate: /spec/tolerations changed",
			paths: []string{"/spec/tolerations"}},
		"last toleration": {before: tolerating(gpu), want: "recreate: /spec/tolerations removed"},
		"toleration replaced": {before: tolerating(gpu), after: tolerating(batch),
			want: "recreate: /spec/tolerations/0/key changed; /spec/tolerations/0/operator added; /spec/tolerations/0/value removed"},
		"one added, one removed": {before: tolerating(gpu), after: tolerating(batch, spot), want: "recreate: /spec/tolerations changed"},
		"other seconds": {before: tolerating(spot),
			after: tolerating(`{"key": "spot", "effect": "NoExecute", "tolerationSeconds": 61}`),
			want:  "recreate: /spec/tolerations/0/tolerationSeconds changed"},
		"no seconds any more": {before: tolerating(spot), after: tolerating(`{"key": "spot", "effect": "NoExecute"}`),
			want: "recreate: /spec/tolerations/0/tolerationSeconds removed"},
		"another order": {before: tolerating(gpu, batch), after: tolerating(batch, gpu),
			want: "recreate: /spec/tolerations reordered"},
		"one twice":          {before: tolerating(gpu), after: tolerating(gpu, gpu), want: "recreate: /spec/tolerations changed"},
		"a newer toleration": {after: tolerating(`{"key": "a", "newer": 1}`), want: "recreate: /spec/tolerations added"},
		"many":               {after: tolerating(several(32)...), want: "in place: no restart"},
		"too many":           {after: tolerating(several(33)...), want: "recreate: /spec/tolerations added"},
		"added beside a newer one": {base: tolerating(`{"key": "a", "newer": 1}`), after: tolerating(`{"key": "a", "newer": 1}`, gpu),
			want: "in place: no restart"},

		// Containers.
		"reordered": {
			after: edits{"/spec/containers": "[" + proxyBefore + "," + appBefore + "]"},
			want:  "recreate: containers reordered", paths: []string{"/spec/containers"},
		},
		"reordered with image": {
			base:   edits{"/spec/restartPolicy": ""},
			before: edits{"/spec/containers": "[" + appBefore + "," + proxyBefore + "]"},
			after:  edits{"/spec/containers": "[" + proxyBefore + "," + appAfter + "]"},
			want:   "recreate: containers reordered",
		},
		"added": {
			before: edits{"/spec/containers": "[" + appBefore + "]"},
			after:  edits{"/spec/containers": "[" + appAfter + "," + proxyBefore + "]"},
			want:   "recreate: container proxy added", paths: []string{"/spec/containers"},
		},
		"removed": {
			before: edits{"/spec/containers": "[" + appBefore + "," + proxyBefore + "]"},
			after:  edits{"/spec/containers": "[" + proxyBefore + "]"},
			want:   "recreate: container app removed",
		},
		"renamed":       {after: edits{"/spec/containers/0/name": `"main"`}, want: "recreate: container main added; container app removed"},
		"image emptied": {after: edits{newImage: `""`}, want: "recreate: /spec/containers/0/image is or was empty"},
		"image filled":  {before: edits{newImage: ""}, want: "recreate: /spec/containers/0/image is or was empty"},

		// Init containers.
		"init image": {
			after: edits{"/spec/initContainers/0/image": `"setup:2"`},
			want:  "recreate: image of init container setup changed, and init containers do not run again in a live pod",
			paths: []string{"/spec/initContainers/0/image"},
		},
		"init container with restart policy OnFailure": {
			base:  edits{"/spec/initContainers/0/restartPolicy": `"OnFailure"`},
			after: edits{"/spec/initContainers/0/image": `"setup:2"`},
			want:  "recreate: image of init container setup changed, and init containers do not run again in a live pod",
		},
		"init containers gone": {
			after: edits{"/spec/initContainers": ""},
			want:  "recreate: init container setup removed; init container side removed",
			paths: []string{"/spec/initContainers", "/spec/initContainers"},
		},

		// Sidecars.
		"sidecar image":       {after: edits{sideImage: `"side:2"`}, want: "in place: restarts side"},
		"sidecar and another": {after: edits{sideImage: `"side:2"`, newImage: `"app:2"`}, want: "in place: restarts app, side"},
		"sidecar and an init container": {
			after: edits{sideImage: `"side:2"`, "/spec/initContainers/0/image": `"setup:2"`},
			want:  "recreate: image of init container setup changed, and init containers do not run again in a live pod",
		},
		"sidecar image emptied": {after: edits{sideImage: `""`}, want: "recreate: /spec/initContainers/1/image is or was empty"},
		"sidecar, something else": {
			after: edits{sideImage: `"side:2"`, "/spec/initContainers/1/command": `["x"]`},
			want:  "recreate: /spec/initContainers/1/command added",
		},
		"sidecar added": {
			after: edits{"/spec/initContainers": "[" + setupBefore + "," + sideAfter +
				`, {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"}]`},
			want: "recreate: init container mesh added", paths: []string{"/spec/initContainers"},
		},
		"sidecar removed": {
			after: edits{"/spec/initContainers": "[" + setupBefore + "]", newImage: `"app:2"`},
			want:  "recreate: init container side removed",
		},
		"sidecar moved": {after: edits{"/spec/initContainers": "[" + sideAfter + "," + setupBefore + "]"},
			want: "recreate: init containers reordered"},
		"sidecar renamed": {after: edits{"/spec/initContainers/1/name": `"mesh"`},
			want: "recreate: init container mesh added; init container side removed"},
		"sidecar beside the others": {after: edits{"/spec/initContainers": "[" + setupBefore + "]",
			"/spec/containers": "[" + appBefore + "," + proxyBefore + "," + sideAfter + "]"},
			want: "recreate: container side added; init container side removed"},
		"init container to sidecar": {after: edits{"/spec/initContainers/0/restartPolicy": `"Always"`},
			want: "recreate: /spec/initContainers/0/restartPolicy added"},
		"sidecar to init container": {after: edits{"/spec/initContainers/1/restartPolicy": ""},
			want: "recreate: /spec/initContainers/1/restartPolicy removed"},
		"the same, with its image": {after: edits{"/spec/initContainers/1/restartPolicy": "", sideImage: `"side:2"`},
			want: "recreate: image of init container side changed, and init containers do not run again in a live pod; " +
				"/spec/initContainers/1/restartPolicy removed"},
		"to sidecar, with its image": {
			after: edits{"/spec/initContainers/0/restartPolicy": `"Always"`, "/spec/initContainers/0/image": `"setup:2"`},
			want:  "recreate: /spec/initContainers/0/restartPolicy added"},
		"sidecar with a startup probe": {
			base:  edits{"/spec/initContainers/1/startupProbe": probe, "/spec/initContainers/1/readinessProbe": probe},
			after: edits{sideImage: `"side:2"`},
			want:  "recreate: sidecar side has a startup probe, so its kubelet may not restart it",
			paths: []string{"/spec/initContainers/1/startupProbe"},
		},
		"startup probe of a sidecar that stays": {
			base: edits{"/spec/initContainers/1/startupProbe": probe}, after: edits{newImage: `"app:2"`},
			want: "in place: restarts app",
		},
		"sidecar with another probe": {
			base: edits{"/spec/initContainers/1/readinessProbe": probe}, after: edits{sideImage: `"side:2"`},
			want: "in place: restarts side",
		},
		"sidecar that reads a label": {
			base: edits{"/spec/initContainers/1/env": readsLabel}, after: edits{sideImage: `"side:2"`, version: `"2"`},
			want: "in place: restarts side",
		},

		// Annotations.
		"restart annotation": {
			after: edits{"/metadata/annotations/kubectl.kubernetes.io~1restartedAt": `"now"`},
			rules: inplace.Rules{Annotations: []string{"note"}},
			want: "recreate: annotation kubectl.kubernetes.io/restartedAt added (with annotation stayput.dev/restart-annotations=kubectl.kubernetes.io/restartedAt containers restart in " +
				"their pods)",
			paths: []string{"/metadata/annotations/kubectl.kubernetes.io~1restartedAt"},
		},
		"first annotation": {before: edits{"/metadata/annotations": ""}, want: "recreate: annotation note added"},
		"last annotation":  {after: edits{"/metadata/annotations": ""}, want: "recreate: annotation note removed"},
		"allowed annotation beside another": {
			after: edits{"/metadata/annotations": `{"note": "b", "x": ""}`},
			rules: inplace.Rules{Annotations: []string{"note"}},
			want:  "recreate: annotation x added",
		},

		"annotation beside a list with a flaw": {
			after: edits{"/metadata/annotations/x": `""`, "/metadata/annotations/y": `""`},
			rules: inplace.Rules{Flaw: &inplace.Reason{Code: inplace.CodeAnnotationList, Path: "/list", Message: "the list is wrong"}},
			want:  "recreate: annotation x added; annotation y added; the list is wrong",
			paths: []string{"/metadata/annotations/x", "/metadata/annotations/y", "/list"},
		},
		"image beside a list with a flaw": {
			after: edits{newImage: `"app:2"`},
			rules: inplace.Rules{Flaw: &inplace.Reason{Code: inplace.CodeAnnotationList, Message: "the list is wrong"}},
			want:  "in place: restarts app",
		},

		// Containers that must not be restarted.
		"startup probe": {
			base: edits{"/spec/containers/0/startupProbe": probe}, after: edits{newImage: `"app:2"`},
			want:  "recreate: container app has a startup probe but no readiness probe",
			paths: []string{"/spec/containers/0/startupProbe"},
		},
		"startup probe elsewhere": {
			base: edits{"/spec/containers/1/startupProbe": probe}, after: edits{newImage: `"app:2"`},
			want: "in place: restarts app",
		},
		"startup and readiness probe": {
			base:  edits{"/spec/containers/0/startupProbe": probe, "/spec/containers/0/readinessProbe": probe},
			after: edits{newImage: `"app:2"`},
			want:  "in place: restarts app",
		},
		"startup probe and label": {
			base: edits{"/spec/containers/0/startupProbe": probe}, after: edits{version: `"2"`},
			want: "in place: no restart",
		},
		"restart policy Never": {
			base: edits{"/spec/containers/0/restartPolicy": `"Never"`}, after: edits{newImage: `"app:2"`},
			want: "recreate: container app has restart policy Never",
		},
		"restart policy Always": {
			base: edits{"/spec/containers/0/restartPolicy": `"Always"`}, after: edits{newImage: `"app:2"`},
			want: "in place: restarts app",
		},
		"restart rules": {
			base: edits{"/spec/containers/0/restartPolicy": `"OnFailure"`,
				"/spec/containers/0/restartPolicyRules": `[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]`},
			after: edits{newImage: `"app:2"`},
			want:  "recreate: container app has restart policy OnFailure; container app has restart rules",
		},

		// Labels and annotations the pod itself reads.
		"label in env":         {base: edits{"/spec/containers/0/env": readsLabel}, after: edits{version: `"2"`}, want: "in place: restarts app"},
		"label in env added":   {base: edits{"/spec/containers/0/env": readsLabel}, before: edits{version: ""}, want: "in place: restarts app"},
		"label in env removed": {base: edits{"/spec/containers/0/env": readsLabel}, after: edits{version: ""}, want: "in place: restarts app"},
		"label in env of both": {
			base:  edits{"/spec/containers/0/env": readsLabel, "/spec/containers/1/env": readsLabel},
			after: edits{version: `"2"`}, want: "in place: restarts app, proxy",
		},
		"label in env of a sidecar": {
			base: edits{"/spec/initContainers/1/env": readsLabel}, after: edits{version: `"2"`}, want: "in place: restarts side",
		},
		"label in env, image of another changed": {
			base: edits{"/spec/containers/1/env": readsLabel}, after: edits{newImage: `"app:2"`, version: `"2"`},
			want: "in place: restarts app, proxy",
		},
		"label in env, startup probe": {
			base:  edits{"/spec/containers/0/env": readsLabel, "/spec/containers/0/startupProbe": probe},
			after: edits{version: `"2"`}, want: "recreate: container app has a startup probe but no readiness probe",
		},
		"label in env, no other name of the image": {
			base:  edits{"/spec/containers/0/env": readsLabel, newImage: `"r.io/app` + sample.Digests[0] + `"`},
			after: edits{version: `"2"`},
			want:  "recreate: image r.io/app" + sample.Digests[0] + " of container app has no other name that would make it restart",
		},
		"label in env, init containers must run": {
			base: edits{"/spec/containers/0/env": readsLabel}, after: edits{version: `"2"`}, rules: inplace.Rules{InitContainers: true},
			want: `recreate: init container setup would not run again, and annotation stayput.dev/init-containers is "native"`,
		},
		"another label, init containers must run": {
			base: edits{"/spec/containers/0/env": readsLabel}, after: edits{"/metadata/labels/app": `"web2"`},
			rules: inplace.Rules{InitContainers: true}, want: "in place: no restart",
		},
		"label in env, resized": {
			base: edits{"/spec/containers/0/env": readsLabel}, before: edits{cpu: `"1"`}, after: edits{cpu: `"2"`, version: `"2"`},
			rules: inplace.Rules{Resize: inplace.ResizeAll}, want: "in place: resizes app, restarts app",
		},
		"label in env, resized with a restart": {
			base:   edits{"/spec/containers/0/env": readsLabel, "/spec/containers/0/resizePolicy": renews},
			before: edits{cpu: `"1"`}, after: edits{cpu: `"2"`, version: `"2"`}, rules: inplace.Rules{Resize: inplace.ResizeAll},
			want: "recreate: " + restartsTwice,
		},
		"label in env, resized with a restart, and all restart": {
			base:   edits{"/spec/initContainers": "", "/spec/containers/0/env": readsLabel, "/spec/containers/0/resizePolicy": renews},
			before: edits{cpu: `"1"`}, after: edits{cpu: `"2"`, version: `"2"`, restartedAt: `"now"`},
			rules: inplace.Rules{Resize: inplace.ResizeAll, Restart: []string{inplace.AnnotationRestartedAt}}, want: "recreate: " + restartsTwice,
		},
		"label in env of an init container": {
			base: edits{"/spec/initContainers/0/env": readsLabel}, after: edits{version: `"2"`},
			want: "recreate: label version is read by init container setup through the downward API",
		},
		"another label in env": {
			base: edits{"/spec/containers/0/env": readsLabel}, after: edits{"/metadata/labels/app": `"web2"`},
			want: "in place: no restart",
		},
		"label in env, image changed": {
			base: edits{"/spec/containers/0/env": readsLabel}, after: edits{newImage: `"app:2"`},
			want: "in place: restarts app",
		},
		"hash in env": {
			base: edits{"/spec/containers/0/env": readsHash}, after: edits{newImage: `"app:2"`},
			want: "recreate: label pod-template-hash is read by container app through the downward API",
		},
		"hash of a ControllerRevision in env": {
			base: edits{"/spec/containers/0/env": readsRev}, after: edits{version: `"2"`},
			want: "recreate: label controller-revision-hash is read by container app through the downward API",
		},
		"hash in env, nothing changed": {
			base: edits{"/spec/containers/0/env": readsHash}, want: "no change",
		},
		"allowed annotation in env": {
			base: edits{"/spec/containers/0/env": readsNote}, after: edits{"/metadata/annotations/note": `"b"`},
			rules: inplace.Rules{Annotations: []string{"note"}},
			want:  "in place: restarts app",
		},
		"another annotation in env": {
			base: edits{"/spec/containers/0/env": readsNote}, after: edits{"/metadata/annotations/note": `"b"`},
			want: "recreate: annotation note changed",
		},
		"allowed annotation in env of an init container": {
			base: edits{"/spec/initContainers/0/env": readsNote}, after: edits{"/metadata/annotations/note": `"b"`},
			rules: inplace.Rules{Annotations: []string{"note"}},
			want:  "recreate: annotation note is read by init container setup through the downward API",
		},
		"all labels in a volume": {
			base: edits{"/spec/volumes/0": `{"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": ` +
				`{"fieldPath": "metadata.labels"}}]}}`},
			after: edits{version: `"2"`},
			want:  "recreate: label version is read by volume info through the downward API", paths: []string{"/spec/volumes/0"},
		},
		"all labels in a volume, image changed": {
			base: edits{"/spec/volumes/0": `{"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": ` +
				`{"fieldPath": "metadata.labels"}}]}}`},
			after: edits{newImage: `"app:2"`},
			want:  "in place: restarts app",
		},
		"label in a projected volume": {
			base: edits{"/spec/volumes/0": `{"name": "all", "projected": {"sources": [{"secret": {"name": "s"}},
				{"downwardAPI": {"items": [{"path": "v", "fieldRef": {"fieldPath": "metadata.labels['version']"}}]}}]}}`},
			after: edits{version: `"2"`},
			want:  "recreate: label version is read by volume all through the downward API",
		},

		// Labels by which the pod was placed.
		"spread by label": {
			base: edits{"/spec/topologySpreadConstraints": `[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
				"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["pod-template-hash", "version"]}]`},
			after: edits{version: `"2"`},
			want:  "recreate: label version decides where the pod is placed", paths: []string{"/spec/topologySpreadConstraints/0"},
		},
		"spread by hash": {
			base: edits{"/spec/topologySpreadConstraints": `[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
				"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["pod-template-hash"]}]`},
			after: edits{newImage: `"app:2"`},
			want:  "in place: restarts app",
		},
		"affinity": {
			base: edits{"/spec/affinity": `{"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"},
				{"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["version"]}]}}`},
			after: edits{version: ""},
			want:  "recreate: label version decides where the pod is placed",
			paths: []string{"/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/1"},
		},
		"anti-affinity": {
			base: edits{"/spec/affinity": `{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
				{"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["version"]}]}}`},
			after: edits{version: `"2"`},
			want:  "recreate: label version decides where the pod is placed",
		},
		"affinity that is only preferred": {
			base: edits{"/spec/affinity": `{"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
				{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["version"]}}]}}`},
			after: edits{version: `"2"`},
			want:  "recreate: label version decides where the pod is placed",
			paths: []string{"/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			change := Compare(edited(t, test.base, test.before), edited(t, test.base, test.after), test.rules)
			if got := change.String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if got := paths(change.Reasons); test.paths != nil && !slices.Equal(got, test.paths) {
				t.Errorf("paths are %q, want %q", got, test.paths)
			}
		})
	}
}

func paths(reasons inplace.Reasons) []string {
	var paths []string
	for _, reason := range reasons {
		paths = append(paths, reason.Path)
	}
	return paths
}

func TestCompareTellsWhatChanges(t *testing.T) {
	change := Compare(edited(t), edited(t, edits{newImage: `"app:2"`, version: `"2"`}), inplace.Rules{})
	container := ContainerChange{Container: "app", Image: ImageChange{From: "app:1", To: "app:2"}}
	label := patches.EntryChange{Key: "version", Value: "2"}
	if !slices.Equal(change.Containers, []ContainerChange{container}) || !slices.Equal(change.Labels, []patches.EntryChange{label}) ||
		len(change.Annotations) > 0 || change.None() {
		t.Errorf("got %+v", change)
	}
}

const (
	gpu   = `{"key": "gpu", "value": "yes", "effect": "NoSchedule"}`
	batch = `{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}`
	spot  = `{"key": "spot", "effect": "NoExecute", "tolerationSeconds": 60}`
)

// tolerating returns edits that give the template these tolerations.
func tolerating(tolerations ...string) edits {
	return edits{"/spec/tolerations": "[" + strings.Join(tolerations, ",") + "]"}
}

// several returns that many tolerations.
func several(count int) []string {
	var all []string
	for i := range count {
		all = append(all, `{"key": "`+strconv.Itoa(i)+`"}`)
	}
	return all
}

func with(all edits, path, value string) edits {
	all = maps.Clone(all)
	all[path] = value
	return all
}

// TestDefaultTolerationsAreKept: pods keep a default toleration from admission that new pods do not get.
func TestDefaultTolerationsAreKept(t *testing.T) {
	const (
		notReady    = `{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}`
		asByDefault = `{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}`
		noSchedule  = `{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}`
		everything  = `{"operator": "Exists"}`
	)
	for name, test := range map[string]struct {
		before, after edits
		want          []string
		native        bool
	}{
		"another toleration":        {nil, tolerating(gpu), nil, false},
		"another effect":            {nil, tolerating(noSchedule), nil, false},
		"for another time":          {nil, tolerating(notReady), []string{"node.kubernetes.io/not-ready"}, false},
		"for as long as by default": {nil, tolerating(asByDefault), nil, false},
		"of everything": {nil, tolerating(everything),
			[]string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}, false},
		"beside one of everything":          {tolerating(everything), tolerating(everything, notReady), nil, false},
		"the template's own one is removed": {tolerating(notReady), nil, nil, true},
	} {
		change := Compare(edited(t, test.before), edited(t, test.after), inplace.Rules{})
		var got []string
		for _, reason := range change.LostTolerations {
			got = append(got, reason.Message[strings.LastIndex(reason.Message, " ")+1:])
		}
		if change.InPlace() == test.native || !slices.Equal(got, test.want) {
			t.Errorf("%s: %s, displaced are %q, want %q", name, change, got, test.want)
		}
	}
}

func TestCompareGivesEveryReasonACode(t *testing.T) {
	change := Compare(edited(t), edited(t, edits{
		"/metadata/annotations/note":   `"b"`,
		"/spec/containers/0/name":      `"main"`,
		"/spec/initContainers/0/image": `"setup:2"`,
		"/spec/hostNetwork":            "true",
	}), inplace.Rules{})
	want := []string{inplace.CodeAnnotation, inplace.CodeContainers, inplace.CodeInitContainer, inplace.CodeTemplateField}
	if got := change.Reasons.Codes(); !slices.Equal(got, want) {
		t.Errorf("codes are %q, want %q", got, want)
	}
}

// The decision must not depend on which of several equal spellings the API server has stored.
func TestCompareIsNoneExactlyForSameTemplates(t *testing.T) {
	base := edited(t)
	for _, other := range []apps.Template{edited(t), edited(t, edits{newImage: `"app:2"`}), edited(t, edits{"/spec/newer": "1"}), {}} {
		change := Compare(base, other, inplace.Rules{})
		same, none := apps.SameTemplate(base, other), change.None()
		if same != none {
			t.Errorf("same is %t but no change is %t for %s", same, none, change)
		}
	}
}
