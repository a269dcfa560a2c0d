package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
)

// cluster is a fake API server. It has lists of objects as JSON by the path of the list, and answers in pages.
type cluster struct {
	*testing.T
	lists map[string][]string
	// forbidden is the path of a list that the user may not read.
	forbidden string
	// asked are the requests with their selectors, largest is the largest answer in objects.
	asked   []string
	largest int
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if c.asked = append(c.asked, r.Method+" "+r.URL.Path+" "+query.Get("labelSelector")); r.URL.Path == c.forbidden {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"forbidden"}`)
		return
	}
	items, more := c.lists[r.URL.Path], ""
	begin, _ := strconv.Atoi(query.Get("continue"))
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && begin+limit < len(items) {
		items, more = items[:begin+limit], strconv.Itoa(begin+limit)
	}
	page := items[begin:]
	c.largest = max(c.largest, len(page))
	kind := `"apiVersion":"apps/v1","kind":"` + listKinds[r.URL.Path] + `"`
	if r.URL.Path == namespacesPath {
		kind = `"apiVersion":"v1","kind":"NamespaceList"`
	}
	fmt.Fprintf(w, `{%s,"metadata":{"continue":%q},"items":[%s]}`, kind, more, strings.Join(page, ","))
}

// reader returns a reader of the cluster. It fails the test if anything but lists was asked for.
func (c *cluster) reader() Reader {
	c.Helper()
	server := httptest.NewServer(c)
	c.Cleanup(server.Close)
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := errors.Join(apps.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		c.Fatal(err)
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet", "ControllerRevision", "StatefulSet"} {
		mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	config := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	from, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		c.Fatal(err)
	}
	return Reader{Reader: from, Selector: labels.Everything(), Excluded: []string{"kube-system"}}
}

const (
	namespacesPath  = "/api/v1/namespaces"
	deploymentsPath = "/apis/apps/v1/deployments"
	replicaSetsPath = "/apis/apps/v1/replicasets"
	daemonSetsPath  = "/apis/apps/v1/daemonsets"
	revisionsPath   = "/apis/apps/v1/controllerrevisions"
	statefulPath    = "/apis/apps/v1/statefulsets"
)

var listKinds = map[string]string{deploymentsPath: "DeploymentList", replicaSetsPath: "ReplicaSetList", daemonSetsPath: "DaemonSetList",
	revisionsPath: "ControllerRevisionList"}

func marshal(t testing.TB, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// object returns the JSON of an object. Its owner is the workload of the kind and name in owner, such as Deployment/web.
func object(t testing.TB, namespace, name, owner string, more map[string]any) string {
	t.Helper()
	metadata := map[string]any{"namespace": namespace, "name": name, "uid": namespace + "/" + name,
		"managedFields": []any{map[string]any{"manager": strings.Repeat("m", 50)}}}
	if kind, of, owned := strings.Cut(owner, "/"); owned {
		metadata["uid"] = namespace + "/revision/" + name
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": of,
			"uid": namespace + "/" + of, "controller": true}}
	}
	whole := maps.Clone(more)
	if added, is := more["metadata"].(map[string]any); is {
		maps.Copy(metadata, added)
	}
	whole["metadata"] = metadata
	return marshal(t, whole)
}

func replicaSet(t testing.TB, name, owner, image, revision, earlier string) string {
	annotations := map[string]any{"deployment.kubernetes.io/revision": revision}
	if earlier != "" {
		annotations["deployment.kubernetes.io/revision-history"] = earlier
	}
	return object(t, "shop", name, owner, map[string]any{"metadata": map[string]any{"annotations": annotations},
		"spec": map[string]any{"template": withImage(image)}})
}

func withImage(image string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}}}
}

func controllerRevision(t testing.TB, namespace, name, owner, image string, revision int) string {
	template := withImage(image)
	template["$patch"] = "replace"
	return object(t, namespace, name, owner, map[string]any{"revision": revision,
		"data": map[string]any{"spec": map[string]any{"template": template}}})
}

// shops returns a cluster with a Deployment that was undone, a DaemonSet, a StatefulSet, and what is left out.
func shops(t *testing.T) *cluster {
	none := map[string]any{}
	return &cluster{T: t, lists: map[string][]string{
		namespacesPath: {object(t, "", "shop", "", map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a"}}})},
		deploymentsPath: {object(t, "shop", "web", "", map[string]any{"spec": map[string]any{"template": withImage("app:1"),
			"strategy": map[string]any{"type": "RollingUpdate"}}})},
		replicaSetsPath: {
			replicaSet(t, "web-b", "Deployment/web", "app:2", "2", ""),
			replicaSet(t, "web-a", "Deployment/web", "app:1", "3", "1"),
			replicaSet(t, "gone", "Deployment/gone", "app:1", "1", ""),
			replicaSet(t, "own", "", "app:1", "", ""),
		},
		daemonSetsPath: {object(t, "shop", "agent", "", none), object(t, "kube-system", "proxy", "", none)},
		statefulPath:   {object(t, "shop", "db", "", none)},
		revisionsPath: {
			controllerRevision(t, "kube-system", "proxy-1", "DaemonSet/proxy", "app:1", 1),
			controllerRevision(t, "kube-system", "proxy-2", "DaemonSet/proxy", "app:2", 2),
			controllerRevision(t, "shop", "agent-1", "DaemonSet/agent", "app:1", 1),
			controllerRevision(t, "shop", "db-4", "StatefulSet/db", "app:1", 4),
			controllerRevision(t, "shop", "agent-2", "DaemonSet/agent", "app:2", 2),
			controllerRevision(t, "shop", "db-5", "StatefulSet/db", "app:2", 5),
		},
	}}
}

func TestAudit(t *testing.T) {
	c := shops(t)
	reader := c.reader()
	reader.Label = "team"
	report, err := reader.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := Counts{All: 4, InPlace: 3, WithSetting: 1} // the edit of web, its undo, the edit of agent; that of db
	want := Report{Workloads: 3, Counts: all, Settings: []Setting{{Setting: "stayput.dev/update: in-place", Rollouts: 1}}, Label: "team",
		Labels: []Group{{"a", all}}, Namespaces: []Group{{"shop", all}}, Reasons: []Reason{}}
	if got := marshal(t, report); got != marshal(t, want) {
		t.Errorf("got  %s\nwant %s", got, marshal(t, want))
	}
}

// TestAuditOnlyReads: the selector is that of the workloads. Revisions have other labels.
func TestAuditOnlyReads(t *testing.T) {
	c := shops(t)
	reader := c.reader()
	reader.Selector = labels.SelectorFromSet(labels.Set{"tier": "web"})
	if _, err := reader.Audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.asked)
	want := []string{"GET " + namespacesPath + " ", "GET " + revisionsPath + " ",
		"GET " + daemonSetsPath + " tier=web", "GET " + deploymentsPath + " tier=web", "GET " + replicaSetsPath + " ",
		"GET " + statefulPath + " tier=web"}
	slices.Sort(want)
	if got := slices.Compact(c.asked); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestAuditWithoutRights(t *testing.T) {
	for path, want := range map[string]string{
		namespacesPath:  "", // without the labels of namespaces
		revisionsPath:   "forbidden",
		deploymentsPath: "forbidden",
	} {
		c := shops(t)
		c.forbidden = path
		report, err := c.reader().Audit(t.Context())
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(strings.ToLower(got), want) {
			t.Errorf("%s: the error is %v, want %q", path, err, want)
		}
		if err == nil && report.All != 4 {
			t.Errorf("%s: %d rollouts", path, report.All)
		}
	}
}

// TestAuditInPages audits more Deployments than an answer has.
func TestAuditInPages(t *testing.T) {
	const deployments = 700
	c := &cluster{T: t, lists: map[string][]string{namespacesPath: {object(t, "", "shop", "", map[string]any{})}}}
	for i := range deployments {
		name := fmt.Sprintf("web-%04d", i)
		c.lists[deploymentsPath] = append(c.lists[deploymentsPath], object(t, "shop", name, "", map[string]any{}))
		for _, revision := range []string{"1", "2"} {
			c.lists[replicaSetsPath] = append(c.lists[replicaSetsPath],
				replicaSet(t, name+"-"+revision, "Deployment/"+name, "app:"+revision, revision, ""))
		}
	}
	report, err := c.reader().Audit(t.Context())
	if want := (Counts{All: deployments, InPlace: deployments}); err != nil || report.Counts != want || c.largest > 500 {
		t.Errorf("%v, counted %+v, want %+v; an answer had %d objects", err, report.Counts, want, c.largest)
	}
}
