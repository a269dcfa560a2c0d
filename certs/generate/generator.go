package generate

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace/patches"
)

// Secret is the name of the Secret with the CAs. The chart creates it empty: the right to create Secrets cannot be limited by name.
const Secret = "stayput-webhook-ca"

// Generator makes the serving certificate of this process.
type Generator struct {
	// live reads from the API server: what is written must not follow from an outdated cache.
	live      client.Reader
	writer    client.Writer
	namespace string
	rotation  rotation

	trusted since  // CAs that are in every caBundle
	foreign since  // certificates that are in a caBundle and not in the Secret
	signer  []byte // the CA that signed what is served
	served  atomic.Pointer[tls.Certificate]
	problem atomic.Pointer[error] // why the last attempt failed
}

// New returns a generator for the managers of a namespace. It serves nothing before AddTo.
func New(namespace string, lifetime time.Duration) *Generator {
	return &Generator{namespace: namespace, rotation: rotation{lifetime}}
}

// GetCertificate returns the certificate that is served now.
func (g *Generator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := g.served.Load(); certificate != nil {
		return certificate, nil
	}
	if problem := g.problem.Load(); problem != nil && *problem != nil {
		return nil, fmt.Errorf("there is no serving certificate yet: %w", *problem)
	}
	return nil, errors.New("there is no serving certificate yet: no CA has been in caBundle of all of Stayput's webhooks for long enough")
}

// host is the name by which API servers call the managers.
func (g *Generator) host() string { return "stayput-webhook." + g.namespace + ".svc" }

// Reconcile brings CAs, webhook configurations and the served certificate up to date.
func (g *Generator) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	wait, err := g.rotate(ctx)
	if apierrors.IsConflict(err) { // another manager was faster
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	g.problem.Store(&err)
	return reconcile.Result{RequeueAfter: wait}, err
}

func (g *Generator) rotate(ctx context.Context) (time.Duration, error) {
	authorities, err := g.authorities(ctx)
	if err != nil {
		return 0, err
	}
	if err := g.inject(ctx, authorities); err != nil {
		return 0, err
	}
	now := time.Now()
	if err := g.serve(ctx, authorities, now); err != nil {
		return 0, err
	}
	return g.rotation.wait(authorities, g.trusted, now), nil
}

// authorities returns the CAs of the Secret, after it has added a new one and dropped old ones where needed.
func (g *Generator) authorities(ctx context.Context) ([]authority, error) {
	secret := &corev1.Secret{}
	err := g.live.Get(ctx, types.NamespacedName{Namespace: g.namespace, Name: Secret}, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret of the webhooks' CA is missing: %w; the chart creates it if certificates.generate is true", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret of the webhooks' CA: %w", err)
	}
	now := time.Now()
	authorities := usable(secret.Data, g.host(), now)
	if !g.rotation.due(authorities, now) {
		kept := g.rotation.kept(authorities, now)
		return kept, g.store(ctx, secret, kept)
	}
	made, err := newAuthority(g.host(), now, g.rotation.lifetime)
	if err != nil {
		return nil, err
	}
	authorities = append([]authority{made}, authorities[:min(len(authorities), most-1)]...)
	if err := g.store(ctx, secret, authorities); err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("Added a new CA to the Secret", "secret", Secret, "until", made.certificate.NotAfter)
	return authorities, nil
}

// store writes the CAs into the Secret, unless it holds just these.
func (g *Generator) store(ctx context.Context, secret *corev1.Secret, authorities []authority) error {
	data, err := stored(authorities)
	if err != nil || maps.EqualFunc(data, secret.Data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return err
	}
	return g.patch(ctx, secret, jsonpatch.NewOperation("add", "/data", data))
}

// inject puts the CAs into caBundle of every webhook.
func (g *Generator) inject(ctx context.Context, authorities []authority) error {
	all, err := g.configurations(ctx)
	if err != nil {
		return err
	}
	g.foreign = g.foreign.update(foreignTo(authorities, all), time.Now())
	var trusted map[string]bool
	for _, object := range all {
		bundles, err := g.injectInto(ctx, object, authorities)
		if err != nil {
			return err
		}
		for _, bundle := range bundles {
			trusted = inBoth(trusted, bundle)
		}
	}
	g.trusted = g.trusted.update(trusted, time.Now())
	return nil
}

// configurations returns Stayput's webhook configurations as they are now.
func (g *Generator) configurations(ctx context.Context) ([]client.Object, error) {
	var all []client.Object
	for _, object := range configurations() {
		err := g.live.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err != nil {
			return nil, fmt.Errorf("read Stayput's webhook configuration: %w", err)
		}
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, injectedByOthers) {
				return nil, fmt.Errorf("webhook configuration %s has the annotation %s, so cert-manager writes caBundle; remove it, "+
					"or run the managers without --generate-certificates", object.GetName(), key)
			}
		}
		all = append(all, object)
	}
	return all, nil
}

// injectInto puts the CAs into the webhooks of one configuration, and returns what each of them trusts.
func (g *Generator) injectInto(ctx context.Context, object client.Object, authorities []authority) ([][]byte, error) {
	var operations []jsonpatch.Operation
	var bundles [][]byte
	for i, there := range bundlesOf(object) {
		bundle := g.rotation.bundle(authorities, there, g.foreign, time.Now())
		if string(bundle) != string(there) {
			operations = append(operations, jsonpatch.NewOperation("add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle))
		}
		bundles = append(bundles, bundle)
	}
	if len(operations) == 0 {
		return bundles, nil
	}
	return bundles, g.patch(ctx, object, operations...)
}

// patch writes what the operations name, unless the object has changed since it was read.
func (g *Generator) patch(ctx context.Context, object client.Object, operations ...jsonpatch.Operation) error {
	patch, err := json.Marshal(patches.Guarded(object, operations...))
	if err != nil {
		return err
	}
	if err := g.writer.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("write the webhooks' CA into %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// serve signs a new certificate if another CA is to sign, or if API servers would refuse what is served.
func (g *Generator) serve(ctx context.Context, authorities []authority, now time.Time) error {
	_, trusted := g.trusted[string(g.signer)]
	certificate := g.served.Load()
	serves := certificate != nil && trusted && now.Before(certificate.Leaf.NotAfter)
	signer, found := g.rotation.signer(authorities, g.trusted, serves, now)
	if !found || serves && string(signer.certificate.Raw) == string(g.signer) {
		return nil
	}
	made, err := signer.leaf(g.host(), now)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Serving a new certificate", "until", made.Leaf.NotAfter)
	g.signer = signer.certificate.Raw
	g.served.Store(made)
	return nil
}
