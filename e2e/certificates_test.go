//go:build e2e && chart

package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestGeneratedCertificates installs the chart without cert-manager, with CAs that last for a minute, and updates workloads in place while
// the managers replace their CA.
func TestGeneratedCertificates(t *testing.T) {
	for _, version := range []string{"helm3", "helm4"} {
		t.Run(version, func(t *testing.T) { generatedCertificates(t, newHelm(t, version)) })
	}
}

func generatedCertificates(t *testing.T, h helm) {
	image := builtImage(t)
	t.Cleanup(func() { h.clear(t) })
	parts := []struct {
		name string
		part func(*testing.T, helm)
	}{
		{"install", func(t *testing.T, h helm) {
			h.install(t, image, "certificates.generate=true,certificates.lifetime=1m")
		}},
		{"test", h.tests},
		{"rotate", rotateWhileUpdating},
		{"empty caBundle", emptyBundles},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, h.in(t)) }) {
			t.FailNow()
		}
	}
}

// rotateWhileUpdating updates a Deployment in place again and again, and asks the webhooks without a pause. Meanwhile CAs come and go, the
// managers are replaced, the leader is deleted, and the Secret is emptied.
func rotateWhileUpdating(t *testing.T, h helm) {
	logged := sizeOf(t, apiServerLog)
	asked := askWithoutPause(t)
	s := newStage(t, labelled)
	s.create(web(3))
	s.managed("web")
	seen, updates, tags := rotations{}, 0, []string{"v2", "v1"}
	for ; len(seen) < 5 || updates < 7; updates++ {
		tag := tags[updates%2]
		s.inPlace("web", once, func() { s.setImage("web", "app="+tag) })
		s.runs("web", tag)
		seen.look(t)
		happen(t, h, updates)
		if updates == 50 {
			t.Fatalf("after %d updates there were only %d CAs", updates, len(seen))
		}
	}
	mended(t)
	t.Logf("%d CAs, %d updates in place, %d questions answered", len(seen), updates, asked())
	for line := range strings.Lines(string(since(t, apiServerLog, logged))) {
		if strings.Contains(line, "failed calling webhook") && strings.Contains(line, "x509") {
			t.Errorf("an API server refused a certificate: %s", line)
		}
	}
}

// emptyBundles does what docs/how-to/certificates.md says to have only the new CA trusted.
func emptyBundles(t *testing.T, h helm) {
	all, _, err := kubectl(t.Context(), "", "get", "mutatingwebhookconfiguration,validatingwebhookconfiguration", ownName, "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	emptied := regexp.MustCompile("caBundle: .*").ReplaceAllString(all, `caBundle: ""`)
	if _, _, err := kubectl(t.Context(), emptied, "replace", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	h.tests(t, h)
}

// happen does, after one of the updates, what may happen to managers and their Secret.
func happen(t *testing.T, h helm, update int) {
	t.Helper()
	switch update {
	case 1:
		h.own("upgrade", stayputChart, "--wait", "--reuse-values", "--set", "resources.requests.cpu=60m")
	case 3:
		leader, err := leadingPod(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := clients.CoreV1().Pods(ownNamespace).Delete(t.Context(), leader.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		mended(t)
	case 5:
		nothing := []byte(`{"data": null}`)
		secrets := clients.CoreV1().Secrets(ownNamespace)
		if _, err := secrets.Patch(t.Context(), generatedCA, types.MergePatchType, nothing, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

const generatedCA = "stayput-webhook-ca"

// rotations has the CAs that were seen in caBundle.
type rotations map[string]bool

// look adds what is there now, and checks that all webhooks trust the same.
func (r rotations) look(t *testing.T) {
	t.Helper()
	configuration, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), ownName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bundle := configuration.Webhooks[0].ClientConfig.CABundle
	for _, webhook := range configuration.Webhooks {
		if !bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			t.Errorf("webhooks %s and %s trust different CAs", configuration.Webhooks[0].Name, webhook.Name)
		}
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		r[certificate.SerialNumber.String()] = true
	}
}

// askWithoutPause makes edits as dry runs in a namespace that is in-place-only: the API server refuses them if a webhook cannot be called.
// The returned function ends that, and returns how many were accepted.
func askWithoutPause(t *testing.T) (end func() int64) {
	t.Helper()
	s := newStage(t, inPlaceOnly)
	s.create(web(1))
	s.managed("web")
	ctx, cancel := context.WithCancel(t.Context())
	var accepted atomic.Int64
	ended := make(chan error, 1)
	go func() { ended <- ask(ctx, s.namespace, &accepted) }()
	return func() int64 {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return accepted.Load()
	}
}

func ask(ctx context.Context, namespace string, accepted *atomic.Int64) error {
	deployments, ticks := clients.AppsV1().Deployments(namespace), time.NewTicker(50*time.Millisecond)
	defer ticks.Stop()
	var failed []error
	for n := 0; ; n++ {
		edit := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{"question":"n%d"}}}}}`, n)
		_, err := deployments.Patch(ctx, "web", types.MergePatchType, edit, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case ctx.Err() != nil:
			return errors.Join(failed...)
		case err != nil:
			failed = append(failed, fmt.Errorf("question %d at %s: %w", n, time.Now().Format(time.TimeOnly), err))
		default:
			accepted.Add(1)
		}
		<-ticks.C
	}
}

var apiServerLog = filepath.Join(repository, ".cluster", "log", "kube-apiserver.log")

func sizeOf(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// since returns what was written to the file after it had that size.
func since(t *testing.T, file string, size int64) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content[min(size, int64(len(content))):]
}
