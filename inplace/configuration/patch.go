package configuration

import (
	"crypto/sha256"
	"encoding/hex"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// Noting returns the operations that write the Record on the workload. Its Pace stays.
func Noting(workload metav1.Object, now Record) []jsonpatch.Operation {
	return noting(workload, now, PaceOf(workload))
}

func noting(workload metav1.Object, now Record, pace Pace) []jsonpatch.Operation {
	return patches.Guarded(workload,
		patches.SetEntries("annotations", workload.GetAnnotations(), [2]string{inplace.AnnotationConfiguration, now.with(pace)})...)
}

// Restarting returns the operations that write the Record and the next Pace, and change the template.
func Restarting(workload metav1.Object, template apps.Template, now Record, next Pace) []jsonpatch.Operation {
	annotations := template.Annotations()
	mark := markAfter(annotations[inplace.AnnotationConfiguration], now)
	operations := noting(workload, now, next)
	if len(annotations) == 0 {
		return append(operations, jsonpatch.NewOperation("add", patches.Pointer("spec", "template", "metadata", "annotations"),
			map[string]string{inplace.AnnotationConfiguration: mark}))
	}
	return append(operations, jsonpatch.NewOperation("add",
		patches.Pointer("spec", "template", "metadata", "annotations", inplace.AnnotationConfiguration), mark))
}

// markAfter returns the next value of the template's annotation. It depends on the value before, so that it differs from it even if an
// undo has brought back a former one.
func markAfter(before string, now Record) string {
	sum := sha256.Sum256([]byte(before + "\n" + now.String()))
	return hex.EncodeToString(sum[:5])
}
