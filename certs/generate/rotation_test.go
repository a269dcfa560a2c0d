package generate

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"
)

const host = "stayput-webhook.stayput-system.svc"

var (
	daily = rotation{24 * time.Hour}
	start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
)

// made returns a CA of the rotation daily, made so long after start.
func made(t *testing.T, after time.Duration) authority {
	t.Helper()
	a, err := newAuthority(host, start.Add(after), daily.lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewCAWhenAThirdIsLeft(t *testing.T) {
	ca := made(t, 0)
	for after, want := range map[time.Duration]bool{
		0: false, 16*time.Hour - time.Second: false, 16 * time.Hour: true, 23 * time.Hour: true, 25 * time.Hour: true,
	} {
		if got := daily.due([]authority{ca}, start.Add(after)); got != want {
			t.Errorf("after %s a new CA is due: %t", after, got)
		}
	}
	if !daily.due(nil, start) {
		t.Error("no CA is due though there is none")
	}
	// Managers with a shorter lifetime leave alone what those with a longer one have made.
	if (rotation{time.Hour}).due([]authority{ca}, start) {
		t.Error("a CA that lasts longer is replaced")
	}
}

func TestOldCAStaysForTheOverlap(t *testing.T) {
	before, newest := made(t, 0), made(t, 16*time.Hour)
	both := []authority{newest, before}
	for after, want := range map[time.Duration]int{16 * time.Hour: 2, 24*time.Hour - time.Second: 2, 24 * time.Hour: 1} {
		if got := daily.kept(both, start.Add(after)); len(got) != want || !got[0].certificate.Equal(newest.certificate) {
			t.Errorf("after %s %d CAs are kept, want %d", after, len(got), want)
		}
	}
}

func TestBundle(t *testing.T) {
	before, newest, foreign, ended := made(t, 0), made(t, 16*time.Hour), made(t, 10*time.Hour), made(t, -9*time.Hour)
	text := func(authorities ...authority) []byte {
		var all []byte
		for _, a := range authorities {
			all = append(all, pemOf(a.certificate)...)
		}
		return all
	}
	several := slices.Repeat([]authority{foreign}, most-1)
	seen := func(after time.Duration) since { return since{string(foreign.certificate.Raw): start.Add(after)} }
	for name, test := range map[string]struct {
		authorities []authority
		there       []byte
		foreign     since
		after       time.Duration
		want        []byte
	}{
		"first CA":                        {[]authority{before}, nil, nil, 0, text(before)},
		"new CA":                          {[]authority{newest, before}, text(before), nil, 16 * time.Hour, text(newest, before)},
		"another's CA during the overlap": {[]authority{newest}, text(foreign), seen(0), 17 * time.Hour, text(newest, foreign)},
		"another's CA after the overlap":  {[]authority{newest}, text(newest, foreign), seen(0), 24 * time.Hour, text(newest)},
		"another's CA that was just found": {[]authority{newest}, text(newest, foreign), seen(24 * time.Hour), 24 * time.Hour,
			text(newest, foreign)},
		"another's CA that has ended": {[]authority{newest}, text(ended), nil, 16 * time.Hour, text(newest)},
		"no certificate":              {[]authority{newest}, []byte("forged\n"), nil, 16 * time.Hour, text(newest)},
		"order and what is there twice": {[]authority{newest, before}, text(before, newest, before), nil, 16 * time.Hour,
			text(newest, before)},
		"more certificates than most of all": {[]authority{newest}, text(append(several, several...)...), nil, 16 * time.Hour,
			text(append([]authority{newest}, several...)...)},
	} {
		t.Run(name, func(t *testing.T) {
			got := daily.bundle(test.authorities, test.there, test.foreign, start.Add(test.after))
			if !bytes.Equal(got, test.want) {
				t.Errorf("the bundle has %d certificates:\n%s\nwant:\n%s", len(certificatesIn(got)), got, test.want)
			}
			if again := daily.bundle(test.authorities, got, test.foreign, start.Add(test.after)); !bytes.Equal(again, got) {
				t.Error("the next look changes the bundle again")
			}
		})
	}
}

func TestSigner(t *testing.T) {
	before, newest := made(t, 0), made(t, 16*time.Hour)
	both, now := []authority{newest, before}, start.Add(17*time.Hour)
	long, short := now.Add(-daily.settle()), now.Add(-daily.settle()+time.Second)
	of := func(a authority) string { return string(a.certificate.Raw) }
	justMade := made(t, 17*time.Hour)
	for name, test := range map[string]struct {
		authorities []authority
		trusted     since
		serves      bool
		want        *authority
	}{
		"the new one is not trusted yet":            {both, since{of(before): long}, true, &before},
		"the new one is trusted for a moment":       {both, since{of(before): long, of(newest): short}, true, &before},
		"the new one is trusted for long":           {both, since{of(before): long, of(newest): long}, true, &newest},
		"both for a moment":                         {both, since{of(before): short, of(newest): short}, true, nil},
		"both for a moment, and nothing is served":  {both, since{of(before): now, of(newest): now}, false, &newest},
		"just made, and nothing is served":          {[]authority{justMade}, since{of(justMade): now, "another": now}, false, nil},
		"just made, the only one, nothing served":   {[]authority{justMade}, since{of(justMade): now}, false, &justMade},
		"just made, one before it, nothing served":  {[]authority{justMade, before}, since{of(justMade): now, of(before): now}, false, &before},
		"none is trusted, and nothing is served":    {both, since{}, false, nil},
		"another is trusted, and nothing is served": {both, since{"another": long}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := daily.signer(test.authorities, test.trusted, test.serves, now)
			if found != (test.want != nil) || found && !got.certificate.Equal(test.want.certificate) {
				t.Errorf("the signer is %v, want %v", got.certificate, test.want)
			}
		})
	}
}

func TestSinceTheFirstLook(t *testing.T) {
	later := start.Add(time.Hour)
	got := since{"a": start, "b": start}.update(map[string]bool{"b": true, "c": true}, later)
	if want := (since{"b": start, "c": later}); !maps.Equal(got, want) {
		t.Errorf("found since %v, want %v", got, want)
	}
}

func TestNextLook(t *testing.T) {
	ca := made(t, 0)
	trusted := since{string(ca.certificate.Raw): start}
	for _, test := range []struct {
		after, want time.Duration
	}{
		{0, 30 * time.Second},                             // it has settled
		{31 * time.Second, time.Minute},                   // an event was missed
		{8*time.Hour - 10*time.Second, 10 * time.Second},  // what was before goes
		{16*time.Hour - 20*time.Second, 20 * time.Second}, // a new CA is due
		{24*time.Hour - 30*time.Second, 30 * time.Second}, // it ends
	} {
		if got := daily.wait([]authority{ca}, trusted, start.Add(test.after)); got != test.want {
			t.Errorf("after %s the next look is in %s, want %s", test.after, got, test.want)
		}
	}
}

// TestUsable checks that only what API servers would accept counts, whatever is in the Secret.
func TestUsable(t *testing.T) {
	ca, newer := made(t, 0), made(t, time.Hour)
	whole, err := stored([]authority{ca, newer})
	if err != nil {
		t.Fatal(err)
	}
	one, err := stored([]authority{ca})
	if err != nil {
		t.Fatal(err)
	}
	otherHost, err := newAuthority("other.svc", start, daily.lifetime)
	if err != nil {
		t.Fatal(err)
	}
	of := func(a authority) map[string][]byte {
		data, err := stored([]authority{a})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	leaf, err := ca.leaf(host, start)
	if err != nil {
		t.Fatal(err)
	}
	now := start.Add(2 * time.Hour)
	for name, test := range map[string]struct {
		data map[string][]byte
		want []authority
	}{
		"an empty Secret":             {nil, nil},
		"both, the newest first":      {whole, []authority{newer, ca}},
		"certificates without keys":   {map[string][]byte{certificatesKey: whole[certificatesKey]}, nil},
		"keys without certificates":   {map[string][]byte{keysKey: whole[keysKey]}, nil},
		"the key of one is missing":   {map[string][]byte{certificatesKey: whole[certificatesKey], keysKey: one[keysKey]}, []authority{ca}},
		"half of the text":            {map[string][]byte{certificatesKey: one[certificatesKey][:99], keysKey: one[keysKey]}, nil},
		"no PEM":                      {map[string][]byte{certificatesKey: []byte("forged"), keysKey: []byte("forged")}, nil},
		"a CA for another host":       {of(otherHost), nil},
		"a certificate that is no CA": {of(authority{leaf.Leaf, leaf.PrivateKey.(crypto.Signer)}), nil},
		"an ended CA":                 {of(made(t, -23*time.Hour)), nil},
		"a CA of the future":          {of(made(t, 4*time.Hour)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := usable(test.data, host, now)
			if !slices.EqualFunc(got, test.want, func(a, b authority) bool { return a.certificate.Equal(b.certificate) }) {
				t.Errorf("%d CAs are usable, want %d", len(got), len(test.want))
			}
		})
	}
}

// TestLeafEndsWithItsCA checks what a serving certificate is for, and for how long: a CA stays in caBundle until it ends.
func TestLeafEndsWithItsCA(t *testing.T) {
	ca := made(t, 0)
	leaf, err := ca.leaf(host, start.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !leaf.Leaf.NotAfter.Equal(ca.certificate.NotAfter) {
		t.Errorf("it ends at %s, its CA at %s", leaf.Leaf.NotAfter, ca.certificate.NotAfter)
	}
	if !slices.Equal(leaf.Leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) || leaf.Leaf.IsCA {
		t.Errorf("it is more than a serving certificate: %+v", leaf.Leaf)
	}
	if _, err := ca.leaf("kubernetes.default.svc", start); err == nil {
		t.Error("the CA signs for another host")
	}
}
