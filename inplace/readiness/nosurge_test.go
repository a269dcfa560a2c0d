package readiness_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/readiness"
)

func TestWhyNoSurge(t *testing.T) {
	port := func(host, container int32) corev1.PodSpec {
		ports := []corev1.ContainerPort{{HostPort: host, ContainerPort: container}}
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Ports: ports}}}
	}
	limit := func(name corev1.ResourceName, amount string) corev1.PodSpec {
		limits := corev1.ResourceList{name: resource.MustParse(amount)}
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: limits}}}}
	}
	const noDevice = "not every node has another device for its "
	onHost, onHostBeside, early := port(0, 8080), port(80, 8080), port(80, 8080)
	onHost.HostNetwork, onHostBeside.HostNetwork = true, true
	early.InitContainers, early.Containers = early.Containers, nil
	for name, test := range map[string]struct {
		spec  corev1.PodSpec
		claim string
		want  string
	}{
		"nothing":                        {},
		"a port of its own":              {spec: port(0, 8080)},
		"a port of the node":             {spec: port(80, 8080), want: "it uses port 80 of its node"},
		"of an init container":           {spec: early, want: "it uses port 80 of its node"},
		"the host's network":             {spec: onHost, want: "it uses port 8080 of its node"},
		"the host's network, other port": {spec: onHostBeside, want: "it uses port 80 of its node"},
		"a GPU":                          {spec: limit("example.com/gpu", "1"), want: noDevice + "example.com/gpu"},
		"no GPU":                         {spec: limit("example.com/gpu", "0")},
		"CPU":                            {spec: limit(corev1.ResourceCPU, "1")},
		"a resource of Kubernetes":       {spec: limit("batch.kubernetes.io/slots", "1")},
		"a device by claim": {spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}},
			want: noDevice + "ResourceClaim gpu"},
		"a volume": {claim: "data", want: "not every node can mount its PersistentVolumeClaim data beside the first"},
	} {
		if got := readiness.WhyNoSurge(test.spec, test.claim); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestClaimsOf(t *testing.T) {
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	volumes := []corev1.Volume{{Name: "a", VolumeSource: claim("data")}, {Name: "b"}, {Name: "c", VolumeSource: claim("logs")}}
	spec := corev1.PodSpec{Volumes: volumes}
	if got := readiness.ClaimsOf(spec); !slices.Equal(got, []string{"data", "logs"}) {
		t.Errorf("the claims are %v", got)
	}
}

func TestSingleNode(t *testing.T) {
	type modes []corev1.PersistentVolumeAccessMode
	const once, pod, many, readers = corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany, corev1.ReadOnlyMany
	for _, test := range []struct {
		asks, bound modes
		single      bool
	}{
		{modes{once}, nil, true}, {modes{pod}, nil, true}, {modes{many}, nil, false}, {modes{readers}, nil, false},
		{modes{once, readers}, nil, false}, {modes{once}, modes{once, many}, false}, {modes{once, many}, modes{once}, true},
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.AccessModes, claim.Status.AccessModes = test.asks, test.bound
		if got := readiness.SingleNode(claim); got != test.single {
			t.Errorf("%v, bound to %v: %t", test.asks, test.bound, got)
		}
	}
}
