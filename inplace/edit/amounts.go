package edit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resizable are the resources that can change in a running container.
var Resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Amounts are the CPU and memory of a container. Quantities have one spelling, so that equal amounts are equal texts, except those that
// WrittenAmounts returns. An amount that is not set is empty.
type Amounts struct {
	CPURequest    string `json:"cpuRequest,omitempty"`
	MemoryRequest string `json:"memoryRequest,omitempty"`
	CPULimit      string `json:"cpuLimit,omitempty"`
	MemoryLimit   string `json:"memoryLimit,omitempty"`
}

// AmountsOf returns the amounts of a container of a template or a pod. A request that is not set equals the limit (SetDefaults_Pod in
// pkg/apis/core/v1/defaults.go).
func AmountsOf(r corev1.ResourceRequirements) Amounts { return readAmounts(r, oneSpelling) }

// WrittenAmounts returns the amounts in the spelling of the container. They are not for comparison: Stayput writes them to a running pod,
// so that it has the same spelling as a new one.
func WrittenAmounts(r corev1.ResourceRequirements) Amounts {
	return readAmounts(r, func(_ corev1.ResourceName, quantity resource.Quantity) string { return quantity.String() })
}

func readAmounts(r corev1.ResourceRequirements, spell func(corev1.ResourceName, resource.Quantity) string) Amounts {
	amount := func(list corev1.ResourceList, name corev1.ResourceName) string {
		quantity, has := list[name]
		if !has {
			return ""
		}
		return spell(name, quantity)
	}
	limits := Amounts{CPULimit: amount(r.Limits, corev1.ResourceCPU), MemoryLimit: amount(r.Limits, corev1.ResourceMemory)}
	limits.CPURequest = cmp.Or(amount(r.Requests, corev1.ResourceCPU), limits.CPULimit)
	limits.MemoryRequest = cmp.Or(amount(r.Requests, corev1.ResourceMemory), limits.MemoryLimit)
	return limits
}

// oneSpelling returns CPU in the smallest unit that the API server keeps, and memory in bytes.
func oneSpelling(name corev1.ResourceName, quantity resource.Quantity) string {
	if name == corev1.ResourceCPU {
		return strconv.FormatInt(quantity.MilliValue(), 10) + "m"
	}
	return strconv.FormatInt(quantity.Value(), 10)
}

// OnlyResizable returns the CPU and memory in the list; nil if the list is nil.
func OnlyResizable(list corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		return nil
	}
	kept := corev1.ResourceList{}
	for _, name := range Resizable {
		if quantity, has := list[name]; has {
			kept[name] = quantity
		}
	}
	return kept
}

// Like returns these amounts, with the other's values wherever both have one.
func (a Amounts) Like(other Amounts) Amounts {
	amount := func(has, wants string) string {
		if has == "" {
			return ""
		}
		return cmp.Or(wants, has)
	}
	return Amounts{CPURequest: amount(a.CPURequest, other.CPURequest), MemoryRequest: amount(a.MemoryRequest, other.MemoryRequest),
		CPULimit: amount(a.CPULimit, other.CPULimit), MemoryLimit: amount(a.MemoryLimit, other.MemoryLimit)}
}

// Requirements returns the amounts in the form that a container has. A text that is not a quantity is left out.
func (a Amounts) Requirements() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: listOf(a.CPURequest, a.MemoryRequest), Limits: listOf(a.CPULimit, a.MemoryLimit)}
}

func listOf(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, text := range []string{cpu, memory} {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			list[Resizable[i]] = quantity
		}
	}
	return list
}

// Both returns the request and the limit of the resource.
func (a Amounts) Both(name corev1.ResourceName) [2]string {
	if name == corev1.ResourceCPU {
		return [2]string{a.CPURequest, a.CPULimit}
	}
	return [2]string{a.MemoryRequest, a.MemoryLimit}
}

// Named returns the amount that the downward API calls by that name, such as limits.cpu; empty if it is not set.
func (a Amounts) Named(field string) string {
	of, name, _ := strings.Cut(field, ".")
	if !slices.Contains(Resizable, corev1.ResourceName(name)) {
		return ""
	}
	both := a.Both(corev1.ResourceName(name))
	if of == "limits" {
		return both[1]
	}
	return both[0]
}

// QOS is ComputePodQOS in pkg/apis/core/helper/qos.
func QOS(spec corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, bestEffort := true, true
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		of := AmountsOf(container.Resources)
		for _, name := range Resizable {
			both := of.Both(name)
			request, limit := positive(both[0]), positive(both[1])
			bestEffort = bestEffort && request == "" && limit == ""
			guaranteed = guaranteed && limit != "" && request == limit
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// positive returns the amount; empty if it is zero.
func positive(amount string) string {
	if amount == "0" || amount == "0m" {
		return ""
	}
	return amount
}
