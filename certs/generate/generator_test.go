package generate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
)

const own = "stayput-system"

// world has an API server with an empty Secret and webhook configurations without CA, as the chart makes them.
type world struct {
	*testing.T
	api client.WithWatch
	// diesAfter is how many writes pass before the process that writes ends; negative: it never ends.
	diesAfter int
}

var errDied = errors.New("the process has ended")

func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mutating, validating := configurations()[0].(*admissionv1.MutatingWebhookConfiguration),
		configurations()[1].(*admissionv1.ValidatingWebhookConfiguration)
	mutating.Webhooks = []admissionv1.MutatingWebhook{{Name: "a"}, {Name: "b"}}
	validating.Webhooks = []admissionv1.ValidatingWebhook{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	w := &world{T: t, diesAfter: -1}
	whole := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secretOf(nil), mutating, validating).Build()
	w.api = interceptor.NewClient(whole, interceptor.Funcs{Patch: w.patch})
	return w
}

func secretOf(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: Secret}, Data: data}
}

// patch passes the write, and then the process may end.
func (w *world) patch(
	ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption,
) error {
	if err := c.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	if w.diesAfter--; w.diesAfter == 0 {
		return errDied
	}
	return nil
}

func (w *world) manager(lifetime time.Duration) *Generator {
	g := New(own, lifetime)
	g.live, g.writer = w.api, w.api
	return g
}

// looks has the manager look until it has nothing more to do, as it does after its own writes.
func (w *world) looks(g *Generator) error {
	for range 2 {
		if _, err := g.Reconcile(w.Context(), reconcile.Request{}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) secret() *corev1.Secret {
	w.Helper()
	secret := secretOf(nil)
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		w.Fatal(err)
	}
	return secret
}

// write writes the data into the Secret, as a user would.
func (w *world) write(data map[string][]byte) {
	w.Helper()
	secret := w.secret()
	secret.Data = data
	if err := w.api.Update(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
}

// bundles returns caBundle of all webhooks.
func (w *world) bundles() [][]byte {
	w.Helper()
	var all [][]byte
	for _, object := range configurations()[:2] {
		if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			w.Fatal(err)
		}
		all = append(all, bundlesOf(object)...)
	}
	return all
}

// refused returns why API servers with these bundles refuse what the manager serves, nil if they accept it.
func refused(g *Generator, bundles [][]byte) error {
	certificate, err := g.GetCertificate(nil)
	if err != nil {
		return err
	}
	for i, bundle := range slices.CompactFunc(slices.Clone(bundles), bytes.Equal) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: time.Now()}); err != nil {
			return fmt.Errorf("webhook %d: %w", i, err)
		}
	}
	return nil
}

func serial(t *testing.T, g *Generator) string {
	t.Helper()
	certificate, err := g.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Leaf.SerialNumber.String()
}

func TestFirstCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one, other := w.manager(time.Hour), w.manager(time.Hour)
		if _, err := one.GetCertificate(nil); err == nil || !strings.Contains(err.Error(), "no CA has been in caBundle") {
			t.Errorf("before the first look: %v", err)
		}
		for _, g := range []*Generator{one, other} {
			if err := w.looks(g); err != nil {
				t.Fatal(err)
			}
			if err := refused(g, w.bundles()); err != nil {
				t.Error(err)
			}
		}
		if n := len(certificatesIn(w.secret().Data[certificatesKey])); n != 1 {
			t.Errorf("two managers made %d CAs", n)
		}
		if serial(t, one) == serial(t, other) {
			t.Error("two managers serve the same certificate")
		}
	})
}

// TestNothingToDoWritesNothing checks that managers with another lifetime do not replace each other's CAs, and write no more than is new.
func TestNothingToDoWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		long, short := w.manager(24*time.Hour), w.manager(time.Hour)
		for _, g := range []*Generator{short, long, short} {
			if err := w.looks(g); err != nil {
				t.Fatal(err)
			}
		}
		before := w.secret().ResourceVersion
		for range 10 {
			time.Sleep(time.Minute)
			for _, g := range []*Generator{long, short} {
				if err := w.looks(g); err != nil {
					t.Fatal(err)
				}
			}
		}
		if after := w.secret().ResourceVersion; after != before {
			t.Errorf("the Secret went from version %s to %s", before, after)
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		broken func(*world)
		want   string
	}{
		"no Secret": {func(w *world) {
			if err := w.api.Delete(w.Context(), w.secret()); err != nil {
				w.Fatal(err)
			}
		}, "certificates.generate"},
		"no webhooks": {func(w *world) {
			if err := w.api.Delete(w.Context(), configurations()[1]); err != nil {
				w.Fatal(err)
			}
		}, "webhook configuration"},
		"cert-manager writes caBundle": {func(w *world) {
			object := configurations()[0]
			if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				w.Fatal(err)
			}
			object.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "a/b"})
			if err := w.api.Update(w.Context(), object); err != nil {
				w.Fatal(err)
			}
		}, "cert-manager writes caBundle"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				test.broken(w)
				g := w.manager(time.Hour)
				if err := w.looks(g); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("it says %v, want %q", err, test.want)
				}
				if _, err := g.GetCertificate(nil); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the readiness check says %v, want %q", err, test.want)
				}
			})
		})
	}
}

// TestOthersCAStaysForTheOverlap checks a change from cert-manager to this mode: managers with cert-manager's certificate still serve.
func TestOthersCAStaysForTheOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		foreign, err := newAuthority(host, time.Now(), 100*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		w.inject(pemOf(foreign.certificate))
		g := w.manager(time.Hour)
		if err := w.looks(g); err != nil {
			t.Fatal(err)
		}
		if g.served.Load() != nil {
			t.Error("a CA signs that API servers may not have read yet")
		}
		time.Sleep(g.rotation.settle())
		both := func() (found int) {
			if err := errors.Join(w.looks(g), refused(g, w.bundles())); err != nil {
				t.Fatal(err)
			}
			for _, bundle := range w.bundles() {
				if slices.ContainsFunc(certificatesIn(bundle), foreign.certificate.Equal) {
					found++
				}
			}
			return found
		}
		if n := both(); n != 5 {
			t.Errorf("the other CA is in %d of 5 bundles", n)
		}
		if time.Sleep(20 * time.Minute); both() != 0 {
			t.Error("the other CA is still there after the overlap")
		}
	})
}

// inject writes caBundle of every webhook.
func (w *world) inject(bundle []byte) {
	w.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: inplace.WebhookConfigurations}
	if err := errors.Join(w.api.Get(w.Context(), key, mutating), w.api.Get(w.Context(), key, validating)); err != nil {
		w.Fatal(err)
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	if err := errors.Join(w.api.Update(w.Context(), mutating), w.api.Update(w.Context(), validating)); err != nil {
		w.Fatal(err)
	}
}

// TestEveryMoment has two managers live through six lifetimes, in random order. Processes end after any of their writes, and start again
// later. The Secret is emptied, halved or forged. At every moment API servers must accept what each manager serves, also API servers whose
// webhook configurations are older by some seconds.
func TestEveryMoment(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { everyMoment(t, rand.New(rand.NewPCG(uint64(seed), 35))) })
		})
	}
}

func everyMoment(t *testing.T, random *rand.Rand) {
	const lifetime, tick = 10 * time.Minute, 20 * time.Second
	w := newWorld(t)
	managers := []*Generator{w.manager(lifetime), w.manager(lifetime)}
	served, idle := map[string]bool{}, 0
	var older [][]byte
	for at := time.Duration(0); at < 6*lifetime; at += tick {
		if random.IntN(20) == 0 {
			w.write(forged(t, random, w.secret().Data))
		}
		for _, i := range random.Perm(2) {
			if w.diesAfter = -1; random.IntN(5) == 0 {
				w.diesAfter = 1 + random.IntN(3)
			}
			if err := w.looks(managers[i]); errors.Is(err, errDied) {
				managers[i] = w.manager(lifetime)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		now := w.bundles()
		idle++
		for i, g := range managers {
			certificate := g.served.Load()
			if certificate == nil {
				continue
			}
			idle, served[certificate.Leaf.SerialNumber.String()] = 0, true
			if err := refused(g, now); err != nil {
				t.Fatalf("after %s manager %d serves a certificate that is refused: %v", at, i, err)
			}
			if err := refused(g, older); err != nil {
				t.Fatalf("after %s manager %d serves a certificate that slow API servers refuse: %v", at, i, err)
			}
		}
		if idle > 3 {
			t.Fatalf("after %s no manager has served anything for a minute", at)
		}
		older = now
		time.Sleep(tick)
	}
	if len(served) < 20 {
		t.Errorf("only %d certificates were served in six lifetimes", len(served))
	}
}

// forged returns what may be in the Secret in place of its data.
func forged(t *testing.T, random *rand.Rand, data map[string][]byte) map[string][]byte {
	t.Helper()
	ca := func(of string, lifetime time.Duration) map[string][]byte {
		made, err := newAuthority(of, time.Now(), lifetime)
		if err != nil {
			t.Fatal(err)
		}
		forged, err := stored([]authority{made})
		if err != nil {
			t.Fatal(err)
		}
		return forged
	}
	halved := map[string][]byte{certificatesKey: data[certificatesKey], keysKey: data[keysKey][:len(data[keysKey])/2]}
	all := []map[string][]byte{
		nil, {}, {certificatesKey: data[certificatesKey]}, {keysKey: data[keysKey]}, {certificatesKey: []byte("x"), keysKey: []byte("x")},
		halved, ca("other.svc", time.Hour), ca(host, 5*time.Minute), ca(host, time.Hour), ca(host, 10000*time.Hour),
	}
	return all[random.IntN(len(all))]
}
