package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// server is a fake API server. It serves only what the plugin asks for.
type server struct {
	*testing.T
	url string
	// objects are the stored objects, by their paths.
	objects map[string]runtime.Object
	// warnings are sent with every answer to a dry run. refusal, if set, is the answer.
	warnings []string
	refusal  *apierrors.StatusError
	// forbidden are paths that the user may not read.
	forbidden []string
	// read, if set, is told of each GET before it is answered.
	read func(path string)
	// write, if set, stores a patch that is no dry run.
	write func(path string, patch []byte)
}

const (
	inShop      = "/apis/apps/v1/namespaces/shop/"
	shopPath    = "/api/v1/namespaces/shop"
	webPath     = inShop + "deployments/web"
	agentPath   = inShop + "daemonsets/agent"
	dbPath      = inShop + "statefulsets/db"
	scalersPath = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
	schemasPath = "/openapi/v3/apis/apps/v1"
)

// serve starts a server with these objects.
func serve(t *testing.T, objects map[string]runtime.Object) *server {
	t.Helper()
	s := &server{T: t, objects: objects}
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	s.url = http.URL
	return s
}

// shop returns the namespace shop, with the mode as its label.
func shop(mode string) *corev1.Namespace {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if mode != "" {
		namespace.Labels = map[string]string{"stayput.dev/update": mode}
	}
	return namespace
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.read != nil && r.Method == http.MethodGet {
		s.read(r.URL.Path)
	}
	switch object, known := s.objects[r.URL.Path]; {
	case strings.HasPrefix(r.URL.Path, "/openapi"):
		s.describe(w, r)
	case slices.Contains(s.forbidden, r.URL.Path):
		s.answer(w, http.StatusForbidden, apierrors.NewForbidden(corev1.Resource("namespaces"), "shop", nil).ErrStatus)
	case r.Method == http.MethodGet && known:
		s.answer(w, http.StatusOK, object)
	case r.Method == http.MethodGet && s.lists(r.URL.Path):
		s.answer(w, http.StatusOK, s.list(r.URL.Path))
	case r.Method == http.MethodGet:
		s.answer(w, http.StatusNotFound, apierrors.NewNotFound(appsv1.Resource("deployments"), "").ErrStatus)
	case s.write != nil && r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "":
		s.store(w, r)
	default:
		s.dryRun(w, r, object)
	}
}

// store answers a write with what it has made of the object.
func (s *server) store(w http.ResponseWriter, r *http.Request) {
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	if s.refusal != nil {
		s.answer(w, int(s.refusal.ErrStatus.Code), s.refusal.ErrStatus)
		return
	}
	s.write(r.URL.Path, patch)
	s.answer(w, http.StatusOK, s.objects[r.URL.Path])
}

func (s *server) lists(path string) bool { return listKinds[filepath.Base(path)] != "" }

func (s *server) list(path string) any {
	items := []runtime.Object{}
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		if filepath.Dir(at) == path {
			items = append(items, s.objects[at])
		}
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), "/namespaces")
	version = strings.TrimSuffix(version, "/nodes")
	return map[string]any{"apiVersion": version, "kind": listKinds[filepath.Base(path)], "items": items}
}

var listKinds = map[string]string{
	"replicasets": "ReplicaSetList", "controllerrevisions": "ControllerRevisionList", "pods": "PodList",
	"horizontalpodautoscalers": "HorizontalPodAutoscalerList", "events": "EventList",
	"deployments": "DeploymentList", "daemonsets": "DaemonSetList", "statefulsets": "StatefulSetList", "namespaces": "NamespaceList",
	"nodes": "NodeList",
}

// dryRun answers a write. It fails the test if the write is no dry run.
func (s *server) dryRun(w http.ResponseWriter, r *http.Request, object runtime.Object) {
	if r.URL.Query().Get("dryRun") != "All" {
		s.Errorf("%s %s would have been stored", r.Method, r.URL)
	}
	for _, warning := range s.warnings {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.Error(err)
	}
	switch {
	case s.refusal != nil:
		s.answer(w, int(s.refusal.ErrStatus.Code), s.refusal.ErrStatus)
	case r.Method == http.MethodPost:
		s.answer(w, http.StatusCreated, json.RawMessage(body))
	default:
		s.answer(w, http.StatusOK, s.patched(object, body))
	}
}

func (s *server) patched(object runtime.Object, patch []byte) json.RawMessage {
	stored, err := json.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(stored, patch, object)
	if err != nil {
		s.Errorf("%s: %v", patch, err)
	}
	return patched
}

func (s *server) answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if status, is := object.(metav1.Status); is {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		object = status
	}
	if err := json.NewEncoder(w).Encode(object); err != nil {
		s.Error(err)
	}
}

// describe serves the schemas, which say how lists are merged.
func (s *server) describe(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != schemasPath {
		s.answer(w, http.StatusOK, json.RawMessage(`{"paths":{"apis/apps/v1":{"serverRelativeURL":"`+schemasPath+`"}}}`))
		return
	}
	s.answer(w, http.StatusOK, json.RawMessage(schemas))
}

const schemas = `{"openapi":"3.0.0","components":{"schemas":{
  "Deployment":{"x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"Deployment"}],"properties":{"metadata":{"$ref":"#/components/schemas/Metadata"},"spec":{"$ref":"#/components/schemas/Spec"}}},
  "DaemonSet":{"x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"DaemonSet"}],"properties":{"metadata":{"$ref":"#/components/schemas/Metadata"},"spec":{"$ref":"#/components/schemas/Spec"}}},
  "StatefulSet":{"x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"StatefulSet"}],"properties":{"metadata":{"$ref":"#/components/schemas/Metadata"},"spec":{"$ref":"#/components/schemas/Spec"}}},
  "Spec":{"properties":{"selector":{"type":"object","properties":{"matchLabels":{"type":"object"}}},"strategy":{"type":"object","properties":{"rollingUpdate":{"type":"object"}}},"template":{"$ref":"#/components/schemas/Template"}}},
  "Template":{"properties":{"metadata":{"$ref":"#/components/schemas/Metadata"},"spec":{"$ref":"#/components/schemas/PodSpec"}}},
  "Metadata":{"properties":{"labels":{"type":"object"},"annotations":{"type":"object"}}},
  "PodSpec":{"properties":{"containers":{"type":"array","items":{"$ref":"#/components/schemas/Container"},"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"name"}}},
  "Container":{"properties":{"resources":{"type":"object","properties":{"requests":{"type":"object"},"limits":{"type":"object"}}},"env":{"type":"array","items":{"type":"object"},"x-kubernetes-patch-strategy":"merge","x-kubernetes-patch-merge-key":"name"}}}
}}}`

// said is what a command has printed.
type said struct{ out, err string }

// run runs a command against the server, and returns its exit code.
func (s *server) run(arguments ...string) (said, int) {
	s.Helper()
	var out, errs bytes.Buffer
	arguments = append(arguments, "--server", s.url, "--kubeconfig", os.DevNull, "--cache-dir", s.TempDir())
	code := Run(s.Context(), arguments, streams{In: os.Stdin, Out: &out, ErrOut: &errs})
	return said{out.String(), errs.String()}, code
}

// file writes the manifests into a file and returns its path.
func (s *server) file(objects ...any) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "manifests.yaml")
	var documents []string
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			s.Fatal(err)
		}
		documents = append(documents, string(document))
	}
	if err := os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}
