package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
)

// fellBack reports whether the update of a workload fell back.
func (c *cluster) fellBack(workload types.UID) bool {
	c.T.Helper()
	return revisions.Fallbacks(c.fallbacks().Data).Of(workload).Hash != ""
}

func (c *cluster) fallbacks() *corev1.ConfigMap {
	c.T.Helper()
	fallbacks := &corev1.ConfigMap{}
	if err := c.Get(c.T.Context(), fixture.Fallbacks, fallbacks); err != nil {
		c.T.Fatal(err)
	}
	return fallbacks
}
