package templates

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
)

// App is the container that every template has, and the value of AppLabel. That label never changes, so a workload can select its pods by
// it.
const (
	App      = "app"
	AppLabel = "app"
)

// NoteAnnotation is the annotation that may change in place according to Rules. Others may not.
const NoteAnnotation = "example.com/note"

// restartKeys are the annotations whose change restarts the containers according to Rules.
var restartKeys = []string{inplace.AnnotationRestartedAt, "checksum/config"}

// light are the parts that running pods can often take. They are changed more often.
var light = []part{
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		entry(r, &t.Labels, pick(r, "version", "tier", "helm.sh/chart"))
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { entry(r, &t.Annotations, NoteAnnotation) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { entry(r, &t.Annotations, pick(r, restartKeys...)) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		entry(r, &t.Annotations, inplace.AnnotationRestartPrefix+pick(r, App, "side", "mesh"))
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { ordinary(r, t).Image = pick(r, images...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { anyContainer(r, t).Image = pick(r, images...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { t.Spec.Tolerations = subset(r, tolerations...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { ordinary(r, t).Resources = pick(r, resources...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { resize(r, &ordinary(r, t).Resources) },
}

// parts are all other parts. They begin with the list of containers, so that the other parts find the containers there.
var parts = []part{
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		t.Spec.Containers = containers(t.Spec.Containers,
			pick(r, []string{App}, []string{App, "side"}, []string{"side", App}, []string{App, "side", "more"})...)
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers = containers(t.Spec.InitContainers, subset(r, "prepare", "mesh")...)
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		for i := range t.Spec.InitContainers {
			sometimes(r, &t.Spec.InitContainers[i].RestartPolicy, new(corev1.ContainerRestartPolicyAlways))
		}
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { entry(r, &t.Annotations, "example.com/other") },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { anyContainer(r, t).Env = subset(r, variables...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &ordinary(r, t).ReadinessProbe, probe(1), probe(2))
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &ordinary(r, t).LivenessProbe, probe(1), probe(2))
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { sometimes(r, &ordinary(r, t).StartupProbe, probe(1)) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		ordinary(r, t).ResizePolicy = pick(r, resizePolicies...)
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { anyContainer(r, t).Resources = pick(r, resources...) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { mount(t, subset(r, volumes...)) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		ordinary(r, t).Ports = subset(r, corev1.ContainerPort{Name: "web", ContainerPort: 80}, corev1.ContainerPort{ContainerPort: 81})
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { anyContainer(r, t).Args = subset(r, "one", "two") },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &anyContainer(r, t).ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent)
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &ordinary(r, t).Lifecycle, &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}})
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &anyContainer(r, t).SecurityContext, &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)})
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		t.Spec.TerminationGracePeriodSeconds = new(pick[int64](r, 5, 6))
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		t.Spec.ReadinessGates = subset(r, corev1.PodReadinessGate{ConditionType: "example.com/gate"})
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &t.Spec.DNSPolicy, corev1.DNSDefault, corev1.DNSClusterFirst)
	},
	func(r *rand.Rand, t *corev1.PodTemplateSpec) { t.Spec.TopologySpreadConstraints = subset(r, spread) },
	func(r *rand.Rand, t *corev1.PodTemplateSpec) {
		sometimes(r, &t.Spec.Affinity, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart}}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: apart}}}})
	},
}

func image(tag string) string { return "registry.example/app:" + tag }

// digest is the digest of every image that a pod runs by a tag.
const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// images are several images, and one of them by several names. The last has no other name.
var images = []string{image("1"), image("2"), image("3"), "app:1", image("1") + "@" + digest, "registry.example/app@" + digest}

// entry changes a label or an annotation, or removes it.
func entry(r *rand.Rand, of *map[string]string, key string) {
	if r.IntN(3) == 0 {
		if delete(*of, key); len(*of) == 0 {
			*of = nil // an API server stores no empty map
		}
		return
	}
	if *of == nil {
		*of = map[string]string{}
	}
	(*of)[key] = pick(r, "1", "2", "")
}

func ordinary(r *rand.Rand, t *corev1.PodTemplateSpec) *corev1.Container {
	return &t.Spec.Containers[r.IntN(len(t.Spec.Containers))]
}

// anyContainer returns a container, which may be an init container.
func anyContainer(r *rand.Rand, t *corev1.PodTemplateSpec) *corev1.Container {
	at := r.IntN(len(t.Spec.Containers) + len(t.Spec.InitContainers))
	if at < len(t.Spec.Containers) {
		return &t.Spec.Containers[at]
	}
	return &t.Spec.InitContainers[at-len(t.Spec.Containers)]
}

// containers returns the containers with these names: unchanged if they exist, else new.
func containers(from []corev1.Container, names ...string) []corev1.Container {
	var all []corev1.Container
	for _, name := range names {
		next := corev1.Container{Name: name, Image: image("1")}
		if at := slices.IndexFunc(from, func(c corev1.Container) bool { return c.Name == name }); at >= 0 {
			next = from[at]
		}
		all = append(all, next)
	}
	return all
}

var variables = []corev1.EnvVar{
	{Name: "A", Value: "1"},
	{Name: "A", Value: "2"},
	{Name: "LABEL", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['version']"}}},
	{Name: "NOTE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + NoteAnnotation + "']"}}},
	{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
}

func probe(period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}},
		PeriodSeconds: period,
	}
}

// resources have limits without requests, equal amounts in other notations, and every QoS class.
var resources = []corev1.ResourceRequirements{
	{},
	{Requests: list("10m", "")},
	{Requests: list("20m", "")},
	{Requests: list("10m", "16Mi")},
	{Requests: list("10m", "16Mi"), Limits: list("100m", "")},
	{Requests: list("10m", "16Mi"), Limits: list("0.1", "32Mi")},
	{Limits: list("", "32Mi")},
	{Limits: list("100m", "32Mi")},
	{Limits: list("200m", "32Mi"), Requests: list("200m", "32768Ki")},
}

func list(cpu, memory string) corev1.ResourceList {
	all := corev1.ResourceList{}
	if cpu != "" {
		all[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		all[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return all
}

// resize changes the amounts that are there. A request that equals its limit still does so afterwards.
func resize(r *rand.Rand, resources *corev1.ResourceRequirements) {
	was := *resources
	*resources = *was.DeepCopy() // templates share them
	requests, limits := list(pick(r, "10m", "20m", "30m"), pick(r, "16Mi", "24Mi")), list(pick(r, "100m", "200m"), pick(r, "32Mi", "64Mi"))
	for name := range was.Limits {
		resources.Limits[name] = limits[name]
	}
	for name, request := range was.Requests {
		resources.Requests[name] = requests[name]
		if limit, has := was.Limits[name]; has && limit.Cmp(request) == 0 {
			resources.Requests[name] = limits[name]
		}
	}
}

var resizePolicies = [][]corev1.ContainerResizePolicy{
	nil,
	{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}},
	{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}},
	{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	},
}

var tolerations = []corev1.Toleration{
	{Key: "example.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: "example.com/disk", Operator: corev1.TolerationOpEqual, Value: "fast"},
	{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(int64(30)),
	},
	{Operator: corev1.TolerationOpExists},
}

var volumes = []corev1.Volume{
	{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Optional: new(true)}}},
	{Name: "labels", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels"}}}}}},
}

// mount sets these volumes as the only ones of the pod, and mounts them in the first container.
func mount(t *corev1.PodTemplateSpec, volumes []corev1.Volume) {
	t.Spec.Volumes = volumes
	for i := range t.Spec.Containers {
		t.Spec.Containers[i].VolumeMounts = nil
	}
	for _, volume := range volumes {
		first := &t.Spec.Containers[0]
		first.VolumeMounts = append(first.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/" + volume.Name})
	}
}

// spread and apart place pods by the value of a label that changes.
var (
	spread = corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: App}}, MatchLabelKeys: []string{"tier"},
	}
	apart = corev1.PodAffinityTerm{
		TopologyKey:   corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: App}}, MatchLabelKeys: []string{"version"},
	}
)
