//go:build e2e && systems

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// driverName is that of e2e/systems/csi.
const driverName = "systems.stayput.dev"

// rig is the CSI driver and the images that all systems need.
type rig struct {
	*testing.T
	updates   int    // in place
	native    int    // natively
	namespace string // of the driver's controller
	volumes   string // the folder with the volumes
	nodes     []string
	images    map[string]func(version int) string
	rows      []row
}

// newRig pushes the images, and starts the driver: a node service for each node, and its controller with the external-attacher in a pod.
func newRig(t *testing.T, updates, native int) *rig {
	t.Helper()
	r := &rig{T: t, updates: updates, native: native, images: map[string]func(int) string{},
		volumes: filepath.Join(repository, ".cluster", "data", "systems")}
	if err := os.MkdirAll(r.volumes, 0o755); err != nil {
		t.Fatal(err)
	}
	r.namespace = createNamespace(t, nil)
	t.Cleanup(func() { deleteNamespace(t, r.namespace) })
	most := max(updates, native)
	for name, versions := range map[string]int{"etcd": most + 1, "nats": most + 1, "member": 1, "csi": 1, "attacher": 1} {
		r.images[name] = pushed(t, programOf(name), versions)
	}
	r.announce()
	for _, node := range kubelets(t) {
		r.nodes = append(r.nodes, node)
		r.startNodeService(node)
	}
	r.startController()
	r.await("every kubelet to know the driver", r.registered)
	return r
}

// image returns the reference of a version, from 1 on.
func (r *rig) image(name string, version int) string { return r.images[name](version) }

// announce creates the CSIDriver, which says that volumes have to be attached.
func (r *rig) announce() {
	r.Helper()
	yes, no, none := true, false, storagev1.NoneFSGroupPolicy
	drivers := clients.StorageV1().CSIDrivers()
	_, err := drivers.Create(r.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{
		AttachRequired: &yes, PodInfoOnMount: &no, FSGroupPolicy: &none}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.Fatal(err)
	}
	r.Cleanup(func() { r.removed(drivers.Delete(context.Background(), driverName, metav1.DeleteOptions{})) })
}

// removed reports that something could not be removed.
func (r *rig) removed(err error) {
	if err != nil {
		r.Error(err)
	}
}

func (r *rig) await(what string, condition func(context.Context) error) {
	r.Helper()
	if err := poll(r.Context(), condition); err != nil {
		r.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// registered returns nil if every kubelet has said that the driver is on its node.
func (r *rig) registered(ctx context.Context) error {
	for _, node := range r.nodes {
		known, err := clients.StorageV1().CSINodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(known.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driverName }) {
			return fmt.Errorf("%s does not know it", node)
		}
	}
	return nil
}

// startNodeService starts the driver of one node, which ends with the test.
func (r *rig) startNodeService(node string) {
	r.Helper()
	socket := filepath.Join(plugins(node), driverName+".sock")
	startProgram(r.T, programOf("csi"), "-socket", socket, "-volumes", r.volumes, "-node", node)
}

// startController starts the controller beside the external-attacher, as drivers do.
func (r *rig) startController() {
	r.Helper()
	r.grant()
	labels, one, root := map[string]string{"app": "controller"}, int32(1), int64(0)
	shared := corev1.VolumeMount{Name: "socket", MountPath: "/csi"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "controller"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: &root},
				Containers: []corev1.Container{
					{Name: "driver", Image: r.image("csi", 1), VolumeMounts: []corev1.VolumeMount{shared, {Name: "volumes", MountPath: "/volumes"}},
						Args: []string{"-socket=/csi/csi.sock", "-volumes=/volumes", "-nodes=" + strings.Join(r.nodes, ",")}},
					{Name: "attacher", Image: r.image("attacher", 1), VolumeMounts: []corev1.VolumeMount{shared},
						Args: []string{"--csi-address=/csi/csi.sock", "--v=4"}},
				},
				Volumes: []corev1.Volume{
					emptyFolder("socket"),
					{Name: "volumes", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: r.volumes}}},
				},
			},
		}}}
	if _, err := clients.AppsV1().Deployments(r.namespace).Create(r.Context(), d, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(r.tellAttachments)
	r.await("the driver's controller", func(ctx context.Context) error {
		now, err := clients.AppsV1().Deployments(r.namespace).Get(ctx, d.Name, metav1.GetOptions{})
		if err == nil && now.Status.AvailableReplicas == 0 {
			err = errors.New("it is not available")
		}
		return err
	})
}

// tellAttachments prints the log of the controller after a failure.
func (r *rig) tellAttachments() {
	if r.Failed() {
		log, _, err := kubectl(context.Background(), "", "-n", r.namespace, "logs", "deployment/controller", "--all-containers", "--tail=200")
		r.Logf("the controller said:\n%s%v", log, err)
	}
}

// grant gives the pod the rights that external-attacher's own manifests give (deploy/kubernetes/rbac.yaml).
func (r *rig) grant() {
	r.Helper()
	roles, bindings := clients.RbacV1().ClusterRoles(), clients.RbacV1().ClusterRoleBindings()
	named := metav1.ObjectMeta{Name: r.namespace}
	storage := "storage.k8s.io"
	_, err := roles.Create(r.Context(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{storage}, Resources: []string{"csinodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{storage}, Resources: []string{"volumeattachments"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{storage}, Resources: []string{"volumeattachments/status"}, Verbs: []string{"patch"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { r.removed(roles.Delete(context.Background(), named.Name, metav1.DeleteOptions{})) })
	_, err = bindings.Create(r.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: named,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: r.namespace}}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { r.removed(bindings.Delete(context.Background(), named.Name, metav1.DeleteOptions{})) })
}

// claims returns the claim of each member.
func (s *subject) claims() []string {
	var claims []string
	for ordinal := range replicasOfMembers {
		claims = append(claims, fmt.Sprintf("data-%s-%d", s.name, ordinal))
	}
	return claims
}

func (s *subject) volumeOf(claim string) string { return s.namespace + "-" + claim }

// provision creates a volume for each claim, which takes that long to be attached.
func (s *subject) provision(delay time.Duration) {
	s.Helper()
	for _, claim := range s.claims() {
		name := s.volumeOf(claim)
		run(s.T, programOf("csi"), "-volumes", s.rig.volumes, "-create", name)
		_, err := clients.CoreV1().PersistentVolumes().Create(s.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: capacity(),
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				ClaimRef:                      &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: driverName, VolumeHandle: name, VolumeAttributes: map[string]string{"attachDelay": delay.String()}}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			s.Fatalf("creating volume %s: %v", name, err)
		}
	}
}

// returnVolumes removes the volumes when they are no longer attached, for which the driver is needed. The namespace is being deleted.
func (s *subject) returnVolumes(t *testing.T) {
	if s.scenario == nil {
		return
	}
	ctx, volumes := context.Background(), clients.CoreV1().PersistentVolumes()
	for _, claim := range s.claims() {
		name := s.volumeOf(claim)
		if err := volumes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		err := poll(ctx, func(ctx context.Context) error {
			_, err := volumes.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("volume %s is still there, or attached", name)
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err = errors.Join(err, os.RemoveAll(filepath.Join(s.rig.volumes, name))); err != nil {
			t.Error(err)
		}
	}
}

// writeReport is what e2e/systems/writer prints.
type writeReport struct {
	Acknowledged int      `json:"acknowledged"`
	Lost         int      `json:"lost"`
	LostSome     []int    `json:"lostSome"`
	Repeated     int      `json:"repeated"`
	Failures     []string `json:"failures"`
	Seconds      float64  `json:"seconds"`
	Gap          float64  `json:"gap"`
	GapAfter     float64  `json:"gapAfter"`
}

// writer is a running e2e/systems/writer, outside of the cluster.
type writer struct {
	input   io.Closer
	reports chan writeReport
	said    *bytes.Buffer
}

// write starts acknowledged writes, and returns when there has been a second of them.
func (s *subject) write() *writer {
	s.Helper()
	dns, err := clients.CoreV1().Services("kube-system").Get(s.Context(), "kube-dns", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	w := &writer{reports: make(chan writeReport), said: &bytes.Buffer{}}
	arguments := append([]string{"-rate", fmt.Sprint(s.rate), "-dns", dns.Spec.ClusterIP + ":53", s.name}, s.urls(s.namespace, s.client)...)
	program := exec.CommandContext(s.Context(), programOf("writer"), arguments...)
	program.Stderr = w.said
	input, err := program.StdinPipe()
	output, failure := program.StdoutPipe()
	if err = errors.Join(err, failure, program.Start()); err != nil {
		s.Fatal(err)
	}
	w.input = input
	go w.follow(program, output)
	s.Logf("writes flow: %+v", w.next(s.scenario))
	return w
}

// follow passes on the reports until there are no more.
func (w *writer) follow(program *exec.Cmd, output io.Reader) {
	for lines := json.NewDecoder(output); ; {
		var told writeReport
		if lines.Decode(&told) != nil {
			break
		}
		w.reports <- told
	}
	_ = program.Wait()
	close(w.reports)
}

func (w *writer) next(s *scenario) writeReport {
	s.Helper()
	select {
	case told, more := <-w.reports:
		if !more {
			s.Fatalf("the writer ended: %s", w.said)
		}
		return told
	case <-time.After(2 * patience): // all that was written has to be read back
		s.Fatal("the writer does not report")
	}
	return writeReport{}
}

// end stops writing, and returns the report about all writes.
func (w *writer) end(s *scenario) writeReport {
	s.Helper()
	if err := w.input.Close(); err != nil {
		s.Fatal(err)
	}
	told := w.next(s)
	s.Logf("written: %+v", told)
	return told
}

// watchServing asks each member ten times a second whether it serves, until the function is called that returns the outages.
func (s *subject) watchServing() func() []outage {
	ctx, stop := context.WithCancel(s.Context())
	requests := make([][]asked, replicasOfMembers)
	var watchers sync.WaitGroup
	for ordinal := range requests {
		watchers.Go(func() { requests[ordinal] = s.ask(ctx, ordinal) })
	}
	return func() []outage {
		stop()
		watchers.Wait()
		var outages []outage
		for ordinal, each := range requests {
			outages = append(outages, outagesOf(ordinal, each)...)
		}
		return outages
	}
}

// ask asks a member at its pod's present address. A member that answers late serves; the time is that of the request.
func (s *subject) ask(ctx context.Context, ordinal int) []asked {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(time.Second / 10)
	defer tick.Stop()
	var requests []asked
	for {
		at, answered := time.Now(), s.answers(ctx, client, ordinal)
		if ctx.Err() != nil {
			return requests
		}
		requests = append(requests, asked{at: at, answered: answered})
		select {
		case <-ctx.Done():
			return requests
		case <-tick.C:
		}
	}
}

func (s *subject) answers(ctx context.Context, client *http.Client, ordinal int) bool {
	pod := s.recorder.member(s.name, ordinal)
	if pod == nil || pod.Status.PodIP == "" {
		return false
	}
	url := fmt.Sprintf("http://%s:%d%s", pod.Status.PodIP, s.system.port, s.serves)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
