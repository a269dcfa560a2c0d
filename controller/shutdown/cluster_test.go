package shutdown

import (
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"
)

// cluster is an API server with an update in progress.
type cluster struct{ *fixture.Cluster }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{fixture.New(t)}
}
