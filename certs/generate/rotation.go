package generate

import (
	"crypto/x509"
	"slices"
	"time"
)

// rotation says when CAs come and go.
type rotation struct {
	// lifetime is how long a CA lasts.
	lifetime time.Duration
}

// overlap is how long the CA before stays beside a new one. A new CA is made when the CA before has so much time left.
func (r rotation) overlap() time.Duration { return r.lifetime / 3 }

// settle is how long a new CA is in every caBundle before it signs: until then, each API server must have read it.
func (r rotation) settle() time.Duration { return min(30*time.Second, r.overlap()/3) }

// spread is how long after a CA was made every manager has had the time to put it into every caBundle.
func (r rotation) spread() time.Duration { return min(5*time.Minute, r.overlap()/2) }

// notice is how long after a change every manager has seen it and has signed anew.
func (r rotation) notice() time.Duration { return min(2*time.Minute, r.overlap()) }

// due reports whether a new CA is needed. That a CA lasts longer than the lifetime is no reason: managers with another lifetime may run at
// the same time, and each would replace the CAs of the others.
func (r rotation) due(authorities []authority, now time.Time) bool {
	return len(authorities) == 0 || authorities[0].certificate.NotAfter.Sub(now) <= r.overlap()
}

// kept returns the CAs that the Secret keeps: the newest one, and the ones before until they end or the overlap is over.
func (r rotation) kept(authorities []authority, now time.Time) []authority {
	if len(authorities) > 0 && r.alone(authorities[0], now) {
		return authorities[:1]
	}
	return authorities
}

// alone reports whether the overlap of the newest CA with those before is over.
func (r rotation) alone(newest authority, now time.Time) bool {
	return !now.Before(newest.made().Add(r.overlap()))
}

// bundle returns the caBundle for these CAs in place of the one that is there. During the overlap it keeps foreign certificates: managers
// may still serve certificates of cert-manager, or of CAs that the Secret has lost.
func (r rotation) bundle(authorities []authority, there []byte, foreign since, now time.Time) []byte {
	var text []byte
	for _, a := range authorities {
		text = append(text, pemOf(a.certificate)...)
	}
	others := foreignIn(there, authorities)
	for _, other := range others[:min(len(others), most-len(authorities))] {
		superseded := r.alone(authorities[0], now) && foreign.forLong(other, r.notice(), now)
		if !superseded && now.Before(other.NotAfter) {
			text = append(text, pemOf(other)...)
		}
	}
	return text
}

// foreignIn returns the certificates of a bundle that are none of these CAs.
func foreignIn(bundle []byte, authorities []authority) []*x509.Certificate {
	return slices.DeleteFunc(certificatesIn(bundle), func(c *x509.Certificate) bool {
		return slices.ContainsFunc(authorities, func(a authority) bool { return a.certificate.Equal(c) })
	})
}

// signer returns the CA that signs what is served: the newest one that has been in every caBundle for long enough. A manager that serves
// nothing cannot know for how long, unless there is no other: it goes by the age of the CA.
func (r rotation) signer(authorities []authority, trusted since, serves bool, now time.Time) (authority, bool) {
	for _, a := range authorities {
		_, known := trusted[string(a.certificate.Raw)]
		presumed := !serves && (len(trusted) == 1 || now.Sub(a.made()) >= r.spread())
		if known && (presumed || trusted.forLong(a.certificate, r.settle(), now)) {
			return a, true
		}
	}
	return authority{}, false
}

// since says since when this process has found certificates where it looked, by their content.
type since map[string]time.Time

// update returns the same for what it finds now.
func (s since) update(found map[string]bool, now time.Time) since {
	next := since{}
	for certificate := range found {
		next[certificate] = now
		if at, known := s[certificate]; known {
			next[certificate] = at
		}
	}
	return next
}

// forLong reports whether the certificate has been there for so long.
func (s since) forLong(certificate *x509.Certificate, long time.Duration, now time.Time) bool {
	at, known := s[string(certificate.Raw)]
	return known && now.Sub(at) >= long
}

// lookEvery is after how long everything is looked at again if no event comes.
func (r rotation) lookEvery() time.Duration { return min(time.Minute, r.overlap()/2) }

// wait returns after how long there is something to do, unless an event comes before.
func (r rotation) wait(authorities []authority, trusted since, now time.Time) time.Duration {
	moments := []time.Time{now.Add(r.lookEvery())}
	for _, a := range authorities {
		end := a.certificate.NotAfter
		moments = append(moments, end, end.Add(-r.overlap()), a.made().Add(r.overlap()), a.made().Add(r.spread()))
	}
	for _, at := range trusted {
		moments = append(moments, at.Add(r.settle()))
	}
	moments = slices.DeleteFunc(moments, func(at time.Time) bool { return !at.After(now) })
	return slices.MinFunc(moments, time.Time.Compare).Sub(now)
}
