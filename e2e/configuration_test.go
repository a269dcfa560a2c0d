//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const configurationAnnotation = "stayput.dev/configuration"

// configurationReload tests restarts that Stayput makes because configuration has changed.
func configurationReload(t *testing.T) {
	scenarios := map[string]func(*testing.T){
		"certificate":       certificateRenewed,
		"without the right": configurationNotGranted,
	}
	for kind, of := range kindsOfWorkloads {
		scenarios[kind] = func(t *testing.T) { configurationChanged(t, of) }
	}
	together(t, lengthy(scenarios, "StatefulSet", "DaemonSet"))
}

// configurationChanged checks that containers restart once for a burst of changes, with the new values in variables and mounted files, and
// that nothing follows an undo.
func configurationChanged(t *testing.T, of kindOfWorkload) {
	s := of.stage(t, labelled)
	s.mayFollow()
	s.kubectl("", "create", "configmap", "conf", "--from-literal=colour=red")
	of.create(s, configured)
	s.follows(of.name, "*", "configmap/conf")
	s.inPlace(of.name, once, func() {
		for _, colour := range []string{"blue", "yellow", "green"} {
			s.kubectl("", "patch", "configmap", "conf", "--type=merge", "-p", `{"data":{"colour":"`+colour+`"}}`)
		}
		s.restartsFor(of.name, "")
	})
	for _, pod := range s.pods(of.name) {
		for _, show := range [][]string{{"version"}, {"show", "/conf/colour"}, {"show", "/colour"}} {
			if shown := s.app(pod, show...); shown != "green" {
				t.Errorf("pod %s: app %s says %q", pod.Name, strings.Join(show, " "), shown)
			}
		}
	}
	seen := s.workload(of.name).GetAnnotations()[configurationAnnotation]
	want := s.seenOf("configmap", "conf", ".metadata.resourceVersion")
	if !strings.HasPrefix(seen, `{"configmap/conf":"`+want+`","restarts":`) {
		t.Errorf("the workload says %s, the version is %s", seen, want)
	}
	s.inPlace(of.name, once, func() { s.rollout("undo", of.name) })
	if mark := s.workload(of.name).template()[configurationAnnotation]; mark != "" {
		t.Errorf("the undone template says %s", mark)
	}
	if after := s.workload(of.name).GetAnnotations()[configurationAnnotation]; after != seen {
		t.Errorf("after the undo the workload says %s, before it said %s, so the containers restart again", after, seen)
	}
}

// certificateRenewed has cert-manager issue a Certificate again. Stayput may not read Secrets.
func certificateRenewed(t *testing.T) {
	s := newStage(t, labelled)
	s.mayFollow()
	s.kubectl(`{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: own}, spec: {selfSigned: {}}}`, "apply", "-f", "-")
	issue := func(host string) {
		s.kubectl(`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web}, spec: {secretName: web-tls, dnsNames: [`+host+
			`], issuerRef: {name: own}}}`, "apply", "-f", "-")
	}
	issue("one.example")
	s.kubectl("", "wait", "certificate", "web", "--for=condition=Ready", "--timeout=1m")
	s.create(web(2, withSecret("web-tls")))
	s.follows("web", "certificate/web", "certificate/web")
	s.inPlace("web", once, func() {
		issue("two.example")
		s.restartsFor("web", "")
	})
	content, err := base64.StdEncoding.DecodeString(s.seenOf("secret", "web-tls", `.data.tls\.crt`))
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range s.pods("web") {
		if shown := s.app(pod, "show", "/tls/tls.crt"); shown != strings.TrimSpace(string(content)) {
			t.Errorf("pod %s has another certificate than the Secret:\n%s", pod.Name, shown)
		}
	}
	seen, want := s.workload("web").GetAnnotations()[configurationAnnotation], s.seenOf("certificate", "web", ".status.revision")
	if want == "1" || !strings.HasPrefix(seen, `{"certificate/web":"`+want+`","restarts":`) {
		t.Errorf("the workload says %s, the revision is %s", seen, want)
	}
}

// configurationNotGranted checks that users are told why nothing restarts.
func configurationNotGranted(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(1))
	s.kubectl("", "annotate", "deployment/web", onChange+"=*")
	s.eventually("an event that says what is missing", func(ctx context.Context) error {
		events, err := s.eventsOn(ctx, "web")
		if err != nil {
			return err
		}
		told := func(e corev1.Event) bool {
			return e.Reason == "ConfigurationNotFollowed" && strings.Contains(e.Message, `cannot list resource "configmaps"`)
		}
		if !slices.ContainsFunc(events, told) {
			return fmt.Errorf("there are %d events, and none of them says so", len(events))
		}
		return nil
	})
	s.expectIn(s.refused("annotate", "--overwrite", "deployment/web", onChange+"=secret/conf"), "configmap/web-config")
}

// mayFollow lets Stayput see the configuration of the namespace.
func (s *stage) mayFollow() {
	s.Helper()
	s.kubectl("", "create", "rolebinding", "follow", "--clusterrole=stayput-configuration-reload",
		"--serviceaccount="+ownNamespace+":"+ownName)
}

// follows asks for restarts on changes, and waits until Stayput has seen these sources.
func (s *stage) follows(name, entries string, sources ...string) {
	s.Helper()
	s.kubectl("", "annotate", ref(name), onChange+"="+entries)
	s.wait("what "+name+" follows to be known", of(name, func(now workload) error {
		var seen map[string]string
		if err := json.Unmarshal([]byte(now.GetAnnotations()[configurationAnnotation]), &seen); err != nil {
			return errors.New("nothing is known yet")
		}
		if known := slices.Sorted(maps.Keys(seen)); !slices.Equal(known, sources) {
			return fmt.Errorf("it follows %q instead of %q", known, sources)
		}
		return nil
	}))
}

// restartsFor waits until Stayput has edited the template, which said mark before.
func (s *stage) restartsFor(name, mark string) {
	s.Helper()
	s.wait("a restart of "+name, of(name, func(now workload) error {
		if now.template()[configurationAnnotation] == mark {
			return errors.New("its template is as before")
		}
		return nil
	}))
}

// seenOf returns a field of an object.
func (s *stage) seenOf(resource, name, field string) string {
	s.Helper()
	return s.kubectl("", "get", resource, name, "-o", "jsonpath={"+field+"}")
}

// app runs the test application in a pod.
func (s *stage) app(pod *corev1.Pod, arguments ...string) string {
	s.Helper()
	return strings.TrimSpace(s.kubectl("", append([]string{"exec", pod.Name, "--", "/app"}, arguments...)...))
}

// withSecret mounts a Secret.
func withSecret(name string) knob {
	return func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name}}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: "/tls"})
	}
}
