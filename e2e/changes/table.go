package changes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Table has the rows of docs/reference/changes.md, in their order.
var Table = []Case{
	{Name: "image of a container", Edit: image(App, "v2"), Decision: "in place: restarts app", Restarts: []string{App}},
	{Name: "images of two containers", Edit: all(image(App, "v3"), image(Side, "v2")), Decision: "in place: restarts app, side",
		Restarts: []string{App, Side}},
	{Name: "image and label", Edit: all(image(App, "v4"), label("helm.sh/chart", "web-2.0.0")), Decision: "in place: restarts app",
		Restarts: []string{App}},
	{Name: "label changed", Edit: label("helm.sh/chart", "web-2.0.1"), Decision: "in place: no restart"},
	{Name: "label added", Edit: label("example.com/added", ""), Decision: "in place: no restart"},
	{Name: "label removed", Edit: func(t *corev1.PodTemplateSpec) { delete(t.Labels, "tier") }, Decision: "in place: no restart"},
	{
		Name: "toleration added", Edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.Tolerations = append(t.Spec.Tolerations, corev1.Toleration{Key: "example.com/gpu", Operator: corev1.TolerationOpExists})
		},
		Decision: "in place: no restart",
	},
	{
		Name: "label that a variable reads through the downward API", Before: env(App, reads("metadata.labels['tier']")), Edit: label("tier",
			"back"),
		Decision: "in place: restarts app", Restarts: []string{App}, Aside: "variables read label tier (app)",
	},
	{
		Name:        "annotation that `stayput.dev/in-place-annotations` names and a variable of a sidecar reads",
		Annotations: map[string]string{"stayput.dev/in-place-annotations": "example.com/*"},
		Before:      all(withSidecar, envOfInit(reads("metadata.annotations['example.com/note']"))), Edit: annotation("example.com/note", "1"),
		Decision: "in place: restarts mesh", Restarts: []string{"mesh"}, Aside: "variables read annotation example.com/note (mesh)",
	},
	{
		Name: "label that a variable of an init container reads", Before: all(prepared, envOfInit(reads("metadata.labels['tier']"))),
		Edit: label("tier", "back"), Decision: "recreate: label tier is read by init container prepare through the downward API",
	},
	{
		Name: "label by which pods are spread (`matchLabelKeys`)", Before: spreadBy("tier"), Edit: label("tier", "back"),
		Decision: "recreate: label tier decides where the pod is placed",
	},
	{
		Name: "annotation named in `--in-place-annotations`", Flags: []string{"--in-place-annotations=example.com/note"},
		Edit:     annotation("example.com/note", "1"),
		Decision: "in place: no restart",
	},
	{
		Name:        "annotation that the workload's `stayput.dev/in-place-annotations` names",
		Annotations: map[string]string{"stayput.dev/in-place-annotations": "example.com/*"}, Edit: annotation("example.com/note", "1"),
		Decision: "in place: no restart",
	},
	{Name: "another annotation", Edit: annotation("example.com/team", "green"), Decision: "recreate: annotation example.com/team changed"},
	{
		Name: "`kubectl rollout restart`", Edit: annotation("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z"),
		Decision: "recreate: annotation kubectl.kubernetes.io/restartedAt added (with annotation stayput.dev/restart-annotations=kubectl.kubernetes.io/restartedAt containers restart in their pods)",
	},
	{
		Name: "`kubectl rollout restart`, where `stayput.dev/restart-annotations` names its annotation", Annotations: restarting,
		Edit:     annotation("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z"),
		Decision: "in place: restarts app, side", Restarts: []string{App, Side},
	},
	{
		Name:        "another annotation that `stayput.dev/restart-annotations` names",
		Annotations: map[string]string{"stayput.dev/restart-annotations": "checksum/*"},
		Edit:        annotation("checksum/config", "1"), Decision: "in place: restarts app, side", Restarts: []string{App, Side},
	},
	{
		Name: "`restart.stayput.dev/app`, as `kubectl stayput restart deployment/web -c app` writes it", Before: prepared,
		Edit:     annotation("restart.stayput.dev/app", "2026-01-01T00:00:00Z"),
		Decision: "in place: restarts app", Restarts: []string{App}, Aside: "init container prepare does not run again",
	},
	{
		Name: "`restart.stayput.dev/mesh` of a sidecar", Before: withSidecar, Edit: annotation("restart.stayput.dev/mesh", "2026-01-01T00:00:00Z"),
		Decision: "in place: restarts mesh", Restarts: []string{"mesh"},
	},
	{
		Name: "`restart.stayput.dev/db` of a container that is not in the template", Edit: annotation("restart.stayput.dev/db", "now"),
		Decision: "recreate: annotation restart.stayput.dev/db added (the template has no container or sidecar db to restart)",
	},
	{
		Name: "image of an init container", Before: prepared,
		Edit:     func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[0].Image = Image("v2") },
		Decision: "recreate: image of init container prepare changed, and init containers do not run again in a live pod",
	},
	{
		Name: "image of a container beside an init container", Before: prepared, Edit: image(App, "v2"),
		Decision: "in place: restarts app", Restarts: []string{App}, Aside: "init container prepare does not run again",
	},
	{
		Name: "image of a container beside an init container, where `stayput.dev/init-containers` is `native`", Before: prepared,
		Annotations: map[string]string{"stayput.dev/init-containers": "native"}, Edit: image(App, "v2"),
		Decision: `recreate: init container prepare would not run again, and annotation stayput.dev/init-containers is "native"`,
	},
	{
		Name: "image of a sidecar", Before: withSidecar, Edit: func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[0].Image = Image("v2") },
		Decision: "in place: restarts mesh", Restarts: []string{"mesh"},
	},
	{
		Name: "image of a container that has a startup probe but no readiness probe", Before: onlyStarting, Edit: image(App, "v2"),
		Decision: "recreate: container app has a startup probe but no readiness probe",
	},
	{Name: "variable added", Edit: env(App, corev1.EnvVar{Name: "SIZE", Value: "1"}), Decision: "recreate: /spec/containers/0/env added"},
	{
		Name: "variable changed", Edit: of(Side, func(c *corev1.Container) { c.Env[1].Value = "green" }),
		Decision: "recreate: /spec/containers/1/env/1/value changed",
	},
	{
		Name: "order of variables", Edit: of(Side, func(c *corev1.Container) { c.Env[0], c.Env[1] = c.Env[1], c.Env[0] }),
		Decision: "recreate: /spec/containers/1/env reordered",
	},
	{
		Name: "image and variable", Edit: all(image(Side, "v3"), env(Side, corev1.EnvVar{Name: "SIZE", Value: "1"})),
		Decision: "recreate: /spec/containers/1/env changed",
	},
	{
		Name: "CPU where `resizePolicy` says `NotRequired`", Before: resizePolicy(corev1.NotRequired), Edit: requests(App, corev1.ResourceCPU,
			"6m"),
		Decision: "in place: resizes app, no restart",
	},
	{
		Name: "CPU and memory", Annotations: resized,
		Edit:     all(requests(App, corev1.ResourceCPU, "6m"), requests(Side, corev1.ResourceMemory, "24Mi")),
		Decision: "in place: resizes app, side, no restart",
	},
	{
		Name: "CPU where `resizePolicy` says `RestartContainer`", Before: resizePolicy(corev1.RestartContainer), Edit: requests(App,
			corev1.ResourceCPU, "6m"),
		Decision: "in place: resizes app, restarts app", Restarts: []string{App},
	},
	{
		Name: "CPU where `resizePolicy` says `RestartContainer`, and image", Before: resizePolicy(corev1.RestartContainer),
		Edit:     all(requests(App, corev1.ResourceCPU, "6m"), image(App, "v2")),
		Decision: "recreate: the resizePolicy of container app asks for a restart when its cpu changes, and it also restarts for another change: it would restart twice",
	},
	{
		Name: "CPU of a container that reads its memory through the downward API", Annotations: resized, Before: env(App,
			readsAmount("requests.memory")),
		Edit:     requests(App, corev1.ResourceCPU, "6m"),
		Decision: "in place: resizes app, no restart",
	},
	{
		Name: "memory of a container that reads it through the downward API", Annotations: resized, Before: env(App,
			readsAmount("requests.memory")),
		Edit:     requests(App, corev1.ResourceMemory, "24Mi"),
		Decision: "recreate: requests.memory of container app is read by variable AMOUNT through the downward API",
	},
	{
		Name: "less CPU and memory", Annotations: resized,
		Edit:     all(requests(App, corev1.ResourceCPU, "4m"), requests(Side, corev1.ResourceMemory, "12Mi")),
		Decision: "in place: resizes app, side, no restart",
	},
	{
		Name: "lower limit of memory", Annotations: resized, Before: limited, Edit: limit("64Mi"),
		Decision: "in place: resizes app, no restart",
	},
	{
		Name: "CPU and image", Annotations: resized, Edit: all(requests(App, corev1.ResourceCPU, "6m"), image(App, "v2")),
		Decision: "in place: resizes app, restarts app", Restarts: []string{App},
	},
	{
		Name: "CPU and `kubectl rollout restart` together", Annotations: map[string]string{"stayput.dev/resize": "in-place",
			"stayput.dev/restart-annotations": "kubectl.kubernetes.io/restartedAt"},
		Edit:     all(requests(App, corev1.ResourceCPU, "6m"), annotation("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z")),
		Decision: "in place: resizes app, restarts app, side", Restarts: []string{App, Side},
	},
	{
		Name: "CPU without `resizePolicy` and without `stayput.dev/resize`", Edit: requests(App, corev1.ResourceCPU, "6m"),
		Decision: "recreate: cpu of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize says whether it needs a restart",
	},
	{
		Name: "CPU although `resizePolicy` says `NotRequired`", Before: resizePolicy(corev1.NotRequired),
		Annotations: map[string]string{"stayput.dev/resize": "native"},
		Edit:        requests(App, corev1.ResourceCPU, "6m"),
		Decision:    `recreate: cpu of container app changed, and annotation stayput.dev/resize is "native"`,
	},
	{
		Name: "limit added", Annotations: resized, Edit: limit("64Mi"),
		Decision: "recreate: container app gains or loses a request or limit of memory, and a running container cannot lose one",
	},
	{
		Name: "limit removed", Annotations: resized, Before: limited, Edit: of(App, func(c *corev1.Container) { c.Resources.Limits = nil }),
		Decision: "recreate: container app gains or loses a request or limit of memory, and a running container cannot lose one",
	},
	{
		Name: "request removed", Annotations: resized,
		Edit:     of(App, func(c *corev1.Container) { delete(c.Resources.Requests, corev1.ResourceCPU) }),
		Decision: "recreate: container app gains or loses a request or limit of cpu, and a running container cannot lose one",
	},
	{
		Name: "CPU by which the QoS class changes", Annotations: resized, Before: almostGuaranteed,
		Edit:     requests(App, corev1.ResourceCPU, "100m"),
		Decision: "recreate: the QoS class changes from Burstable to Guaranteed",
	},
	{
		Name: "CPU of a sidecar", Annotations: resized, Before: withSidecar, Edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("6m")
		},
		Decision: "recreate: /spec/initContainers/0/resources/requests/cpu changed",
	},
	{
		Name: "probe", Edit: of(App, func(c *corev1.Container) { c.ReadinessProbe.PeriodSeconds = 2 }),
		Decision: "recreate: /spec/containers/0/readinessProbe/periodSeconds changed",
	},
	{
		Name: "port", Edit: of(App, func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 8080}} }),
		Decision: "recreate: /spec/containers/0/ports added",
	},
	{
		Name: "pull policy", Edit: of(Side, func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways }),
		Decision: "recreate: /spec/containers/1/imagePullPolicy changed",
	},
	{
		Name: "security context", Edit: of(App, func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
		}),
		Decision: "recreate: /spec/containers/0/securityContext added",
	},
	{Name: "volume", Edit: mounted, Decision: "recreate: /spec/containers/0/volumeMounts added; /spec/volumes added"},
	{
		Name: "node selector", Edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
		},
		Decision: "recreate: /spec/nodeSelector added",
	},
	{
		Name: "termination grace period", Edit: func(t *corev1.PodTemplateSpec) { *t.Spec.TerminationGracePeriodSeconds++ },
		Decision: "recreate: /spec/terminationGracePeriodSeconds changed",
	},
	{
		Name: "container added", Edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers = append(t.Spec.Containers, listening("more", 8082))
		},
		Decision: "recreate: container more added",
	},
}

// all combines several changes.
func all(edits ...func(*corev1.PodTemplateSpec)) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		for _, edit := range edits {
			edit(t)
		}
	}
}

// of changes the container of that name.
func of(name string, edit func(*corev1.Container)) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.Containers {
			if t.Spec.Containers[i].Name == name {
				edit(&t.Spec.Containers[i])
			}
		}
	}
}

func image(container, tag string) func(*corev1.PodTemplateSpec) {
	return of(container, func(c *corev1.Container) { c.Image = Image(tag) })
}

func env(container string, variable corev1.EnvVar) func(*corev1.PodTemplateSpec) {
	return of(container, func(c *corev1.Container) { c.Env = append(c.Env, variable) })
}

// envOfInit adds the variable to the first init container.
func envOfInit(variable corev1.EnvVar) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers[0].Env = append(t.Spec.InitContainers[0].Env, variable)
	}
}

func reads(field string) corev1.EnvVar {
	return corev1.EnvVar{Name: "FIELD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
		FieldPath: field}}}
}

func readsAmount(resource string) corev1.EnvVar {
	return corev1.EnvVar{Name: "AMOUNT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: resource}}}
}

func label(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataLabel(&t.ObjectMeta, key, value) }
}

func annotation(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) }
}

// spreadBy spreads pods by the values of the label, where that is possible.
func spreadBy(key string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/spread": "yes"}}, MatchLabelKeys: []string{key},
		}}
	}
}

// prepared adds an init container, which prints its version and ends.
func prepared(t *corev1.PodTemplateSpec) {
	t.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: Image("v1"), Args: []string{"version"}}}
}

func withSidecar(t *corev1.PodTemplateSpec) {
	mesh := listening("mesh", 8082)
	mesh.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	t.Spec.InitContainers = []corev1.Container{mesh}
}

// resized permits resizes of running containers, restarting that kubectl rollout restart is made in place.
var (
	resized    = map[string]string{"stayput.dev/resize": "in-place"}
	restarting = map[string]string{"stayput.dev/restart-annotations": "kubectl.kubernetes.io/restartedAt"}
)

func requests(container string, name corev1.ResourceName, amount string) func(*corev1.PodTemplateSpec) {
	return of(container, func(c *corev1.Container) { c.Resources.Requests[name] = resource.MustParse(amount) })
}

// limit sets the memory limit of App.
func limit(memory string) func(*corev1.PodTemplateSpec) {
	return of(App, func(c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	})
}

func limited(t *corev1.PodTemplateSpec) { limit("96Mi")(t) }

// resizePolicy sets what App needs when its CPU changes.
func resizePolicy(restart corev1.ResourceResizeRestartPolicy) func(*corev1.PodTemplateSpec) {
	return of(App, func(c *corev1.Container) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: restart}}
	})
}

// almostGuaranteed sets limits, and equal requests except for the CPU of one container.
func almostGuaranteed(t *corev1.PodTemplateSpec) {
	most := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	for i := range t.Spec.Containers {
		t.Spec.Containers[i].Resources = corev1.ResourceRequirements{Requests: most.DeepCopy(), Limits: most.DeepCopy()}
	}
	requests(App, corev1.ResourceCPU, "50m")(t)
}

func onlyStarting(t *corev1.PodTemplateSpec) {
	of(App, func(c *corev1.Container) { c.StartupProbe, c.ReadinessProbe = c.ReadinessProbe, nil })(t)
}

// mounted adds a volume of its own to a container.
func mounted(t *corev1.PodTemplateSpec) {
	t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "scratch",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	of(App, func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	})(t)
}
