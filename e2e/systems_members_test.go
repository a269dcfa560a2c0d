//go:build e2e && systems

package e2e

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replicasOfMembers is the number of members: with one of three away, the others are a majority.
const replicasOfMembers = int32(3)

// system is a stateful system, as charts install it.
type system struct {
	title  string
	name   string // of the StatefulSet, its Service, its container and its image
	policy appsv1.PodManagementPolicyType
	ports  []corev1.ServicePort
	// member is the container, without image and volumes.
	member func(namespace string) corev1.Container
	// first is an init container, or nil.
	first func(namespace string) corev1.Container
	// serves is the path at which a member says whether it serves, also while the members choose a leader. ready is what its readiness probe
	// asks. port is that of both.
	serves, ready string
	port          int
	rate          int // writes a second
	client        string
}

func (of system) ref() string { return statefulSetPrefix + of.name }

const (
	dataFolder   = "/data"
	configFolder = "/config"
)

func portsNamed(ports map[string]int32) []corev1.ServicePort {
	var list []corev1.ServicePort
	for name, port := range ports {
		list = append(list, corev1.ServicePort{Name: name, Port: port})
	}
	return list
}

// domainOf is the part that the names of all members share.
func (of system) domainOf(namespace string) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", of.name, namespace)
}

// urls returns a URL of each member.
func (of system) urls(namespace, format string) []string {
	var urls []string
	for ordinal := range replicasOfMembers {
		pod := fmt.Sprintf("%s-%d", of.name, ordinal)
		urls = append(urls, strings.NewReplacer("{pod}", pod, "{host}", pod+"."+of.domainOf(namespace)).Replace(format))
	}
	return urls
}

// etcdOf is etcd. A member is ready when it answers with a quorum, so none is before two of the first three run, nor without a leader.
func etcdOf(policy appsv1.PodManagementPolicyType) system {
	return system{
		title: "etcd, " + string(policy), name: "etcd", policy: policy,
		ports:  portsNamed(map[string]int32{"client": 2379, "peer": 2380}),
		serves: "/livez", ready: "/readyz", port: 2379, rate: 200, client: "http://{host}:2379",
	}
}

// etcdParallel starts all members at once, which then form a cluster.
func etcdParallel() system {
	of := etcdOf(appsv1.ParallelPodManagement)
	of.member = func(namespace string) corev1.Container {
		host := "$(POD_NAME)." + of.domainOf(namespace)
		return corev1.Container{Args: []string{
			"--name=$(POD_NAME)", "--data-dir=" + dataFolder + "/etcd", "--initial-cluster-token=" + namespace,
			"--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://" + host + ":2379",
			"--listen-peer-urls=http://0.0.0.0:2380", "--initial-advertise-peer-urls=http://" + host + ":2380",
			"--initial-cluster=" + strings.Join(of.urls(namespace, "{pod}=http://{host}:2380"), ","),
		}, ReadinessProbe: probe(of.ready, of.port)}
	}
	return of
}

// etcdOrdered lets the cluster grow by one member at a time: with OrderedReady no pod is created before the last one is ready.
func etcdOrdered() system {
	of := etcdOf(appsv1.OrderedReadyPodManagement)
	of.member = func(string) corev1.Container {
		return corev1.Container{Args: []string{"--config-file=" + configFolder + "/etcd.yaml"}, ReadinessProbe: probe(of.ready, of.port)}
	}
	of.first = func(namespace string) corev1.Container {
		return corev1.Container{Args: []string{
			"-name=$(POD_NAME)", "-domain=" + of.domainOf(namespace), "-data=" + dataFolder + "/etcd", "-output=" + configFolder + "/etcd.yaml",
		}}
	}
	return of
}

// natsParallel is NATS with JetStream, and with the probes of its chart: it has started when its streams have caught up.
func natsParallel() system {
	of := system{
		title: "NATS JetStream, Parallel", name: "nats", policy: appsv1.ParallelPodManagement,
		ports:  portsNamed(map[string]int32{"client": 4222, "cluster": 6222, "monitor": 8222}),
		serves: "/healthz?js-server-only=true", ready: "/healthz?js-server-only=true", port: 8222, rate: 500, client: "nats://{host}:4222",
	}
	of.member = func(namespace string) corev1.Container {
		started := probe("/healthz", of.port)
		started.FailureThreshold = 180
		return corev1.Container{Args: []string{
			"--name=$(POD_NAME)", "--jetstream", "--store_dir=" + dataFolder, "--http_port=8222",
			"--cluster_name=" + namespace, "--cluster=nats://0.0.0.0:6222",
			"--routes=" + strings.Join(of.urls(namespace, "nats://{host}:6222"), ","),
		}, StartupProbe: started, ReadinessProbe: probe(of.ready, of.port)}
	}
	return of
}

// probe asks once a second, and grants a loaded machine its time.
func probe(path string, port int) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}},
		PeriodSeconds: 1, TimeoutSeconds: 10}
}

// set returns the StatefulSet at the first version, whose pods prefer nodes of their own.
func (of system) set(namespace string, image func(name string, version int) string) *appsv1.StatefulSet {
	labels, replicas := map[string]string{"app": of.name}, replicasOfMembers
	sts := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: of.name, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: of.name, PodManagementPolicy: of.policy, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers:                   []corev1.Container{of.mounted(of.member(namespace), of.name, image(of.name, 1))},
				Volumes:                      []corev1.Volume{emptyFolder("config")},
				AutomountServiceAccountToken: new(bool),
				Affinity:                     apartOf(labels),
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimed()}},
		},
	}
	if of.first != nil {
		sts.Spec.Template.Spec.InitContainers = []corev1.Container{of.mounted(of.first(namespace), "member", image("member", 1))}
	}
	return sts
}

func (of system) mounted(c corev1.Container, name, image string) corev1.Container {
	c.Name, c.Image = name, image
	podName := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	c.Env = []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: podName}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: dataFolder}, {Name: "config", MountPath: configFolder}}
	return c
}

// apartOf prefers a node without another pod of these labels.
func apartOf(labels map[string]string) *corev1.Affinity {
	others := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: others}}}}
}

// claimed is the spec of each member's claim. Without a StorageClass it gets the volume that names it.
func claimed() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(string),
		Resources: corev1.VolumeResourceRequirements{Requests: capacity()},
	}
}

func capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}
