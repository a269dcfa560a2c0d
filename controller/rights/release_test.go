package rights

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// removed is an API server on which all objects are being deleted. As in Kubernetes, a request is authorized by the objects that are there
// when it arrives, before its body is read, and an object is gone with its finalizer.
type removed struct {
	lock     sync.Mutex
	there    []string
	needed   int // with fewer objects, no request is authorized
	received []string
}

func (s *removed) ServeHTTP(to http.ResponseWriter, request *http.Request) {
	if !s.authorizes() {
		http.Error(to, "no rights any more", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(to, err.Error(), http.StatusBadRequest)
		return
	}
	s.remove(request.URL.Path, fmt.Sprintf("%s %s %s", request.Method, request.Header.Get("Content-Type"), body))
}

func (s *removed) authorizes() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.there) >= s.needed
}

func (s *removed) remove(path, received string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.there = slices.DeleteFunc(s.there, func(other string) bool { return other == path })
	s.received = append(s.received, received)
}

// paths are where the API server has the objects.
var paths = []string{
	"/api/v1/namespaces/own/serviceaccounts/managers",
	"/apis/rbac.authorization.k8s.io/v1/namespaces/own/roles/stayput",
	"/apis/rbac.authorization.k8s.io/v1/namespaces/own/rolebindings/stayput",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles/stayput",
	"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/stayput",
}

func release5(t *testing.T, server *removed) error {
	t.Helper()
	listening := httptest.NewUnstartedServer(server)
	listening.EnableHTTP2 = true
	listening.StartTLS()
	t.Cleanup(listening.Close)
	config := &rest.Config{Host: listening.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	r, err := New(fake.NewFakeClient(), config, "own", "managers")
	if err != nil {
		t.Fatal(err)
	}
	return r.Release(t.Context())
}

// TestReleaseNeedsNoRightThatIsGone releases objects each of which is needed to authorize any request.
func TestReleaseNeedsNoRightThatIsGone(t *testing.T) {
	for range 10 {
		server := &removed{there: slices.Clone(paths), needed: len(paths)}
		if err := release5(t, server); err != nil {
			t.Fatal(err)
		}
		if len(server.there) > 0 {
			t.Fatalf("still there are %q", server.there)
		}
		want := `PATCH application/strategic-merge-patch+json {"metadata":{"$deleteFromPrimitiveList/finalizers":["stayput.dev/fall-back"]}}`
		if !slices.Equal(server.received, slices.Repeat([]string{want}, len(paths))) {
			t.Fatalf("the server received\n%s", strings.Join(server.received, "\n"))
		}
	}
}

// TestReleaseSaysWhatIsRefused has a server that authorizes nothing. No request waits for the others then.
func TestReleaseSaysWhatIsRefused(t *testing.T) {
	err := release5(t, &removed{needed: 1})
	for _, name := range []string{
		"ServiceAccount managers", "Role stayput", "RoleBinding stayput", "ClusterRole stayput", "ClusterRoleBinding stayput",
	} {
		if want := "take finalizer stayput.dev/fall-back off our own " + name + ": 403 Forbidden: no rights any more"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
