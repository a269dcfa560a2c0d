package engine

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/podstate"
)

// Drains has since when no EndpointSlice offers a pod that waits for its restart, by UID. After a restart of the leader the wait begins
// anew.
type Drains map[types.UID]time.Time

// Noted returns the drains after the API server was asked: pods that it does not offer, since when they are known to be out of service, or
// since now.
func (d Drains) Noted(current podstate.Endpoints, now time.Time) Drains {
	out := Drains{}
	for uid, endpoint := range current {
		if !endpoint.Listed {
			out[uid] = cmp.Or(d[uid], now)
		}
	}
	return out
}

// Complete sets OutSince of the endpoints, and returns the drains without pods that are offered again. It returns false if a pod is out of
// service, its OutSince matters, and is not known: then the API server has to be asked.
func (d Drains) Complete(endpoints podstate.Endpoints) (left Drains, known bool) {
	left, known = Drains{}, true
	for uid, endpoint := range endpoints {
		since, out := d[uid]
		if out && !endpoint.Listed {
			left[uid], endpoint.OutSince = since, since
			endpoints[uid] = endpoint
		}
		matters := !endpoint.Listed && !endpoint.NoClientSent && endpoint.LastOf == ""
		known = known && (!matters || !endpoint.OutSince.IsZero())
	}
	return left, known
}
