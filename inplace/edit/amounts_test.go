package edit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func listed(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	return list
}

// TestAmountsOf checks that equal amounts have equal texts, and that a request that is not set equals the limit.
func TestAmountsOf(t *testing.T) {
	for name, test := range map[string]struct {
		requests, limits corev1.ResourceList
		want             Amounts
	}{
		"nothing":              {nil, nil, Amounts{}},
		"requests":             {listed("0.5", "1Gi"), nil, Amounts{CPURequest: "500m", MemoryRequest: "1073741824"}},
		"spelled otherwise":    {listed("500m", "1024Mi"), nil, Amounts{CPURequest: "500m", MemoryRequest: "1073741824"}},
		"a limit alone":        {nil, listed("1", ""), Amounts{CPURequest: "1000m", CPULimit: "1000m"}},
		"a limit and requests": {listed("1", "1"), listed("2", "2"), Amounts{"1000m", "1", "2000m", "2"}},
	} {
		if got := AmountsOf(corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestWrittenAmounts checks that amounts that are written keep their unit, and that requirements read back as the amounts.
func TestWrittenAmounts(t *testing.T) {
	r := corev1.ResourceRequirements{Requests: listed("0.5", "1Gi"), Limits: listed("1", "2G")}
	if got, want := WrittenAmounts(r), (Amounts{"500m", "1Gi", "1", "2G"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := AmountsOf(AmountsOf(r).Requirements()); got != AmountsOf(r) {
		t.Errorf("%+v reads back as %+v", AmountsOf(r), got)
	}
	if broken := (Amounts{CPURequest: "much"}).Requirements(); len(broken.Requests) > 0 {
		t.Errorf("a text that is no quantity becomes %v", broken)
	}
}

// TestAmountsLike checks that an amount comes only where there is one already.
func TestAmountsLike(t *testing.T) {
	has, wants := Amounts{CPURequest: "100m", MemoryLimit: "1"}, Amounts{CPURequest: "200m", CPULimit: "300m"}
	if got, want := has.Like(wants), (Amounts{CPURequest: "200m", MemoryLimit: "1"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOnlyResizable(t *testing.T) {
	if got := OnlyResizable(nil); got != nil {
		t.Errorf("no list becomes %v", got)
	}
	list := listed("1", "1Gi")
	list[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	if got := OnlyResizable(list); len(got) != 2 || OnlyResizable(corev1.ResourceList{}) == nil {
		t.Errorf("%v become %v", list, got)
	}
}

// TestZeroIsNoAmount: as natively, for the quality of service.
func TestZeroIsNoAmount(t *testing.T) {
	for amount, want := range map[string]string{"0": "", "0m": "", "": "", "1": "1", "10m": "10m"} {
		if got := positive(amount); got != want {
			t.Errorf("%q counts as %q", amount, got)
		}
	}
}
