package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/stayput/stayput/inplace/apps"
)

// cut returns the request with names no longer than those that API servers send. Strangers may send longer ones, and logs and spans have
// the names.
func cut(req admission.Request) admission.Request {
	for _, name := range []*string{
		(*string)(&req.Operation), &req.Kind.Kind, &req.SubResource, &req.Namespace, &req.Name, &req.UserInfo.Username,
	} {
		*name = line(*name)
	}
	return req
}

// key returns the namespace and name of the object that the request is about.
func key(req admission.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
}

// decode reads an object of a request as API servers do: the names of fields must match exactly, and each field may occur only once. So a
// patch finds what was read here. Every object must have metadata. Parts are the other fields that the object must have, because the
// answer may patch them.
func decode[T any](raw runtime.RawExtension, parts ...string) (*T, error) {
	decoded := new(T)
	if err := decodeInto(decoded, raw, parts...); err != nil {
		return nil, err
	}
	return decoded, nil
}

// decodeInto is decode for an object of which only the kind is known.
func decodeInto(decoded any, raw runtime.RawExtension, parts ...string) error {
	twice, err := kjson.UnmarshalStrict(raw.Raw, decoded, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
	case len(twice) > 0:
		err = twice[0]
	default:
		err = lacking(raw.Raw, append(parts, "metadata")...)
	}
	if err != nil {
		return fmt.Errorf("decode the object of the request: %w", err)
	}
	return nil
}

// lacking returns an error that names the first of the parts that is missing or no JSON object.
func lacking(raw []byte, parts ...string) error {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil {
		return err
	}
	for _, part := range parts {
		if !bytes.HasPrefix(has[part], []byte("{")) {
			return fmt.Errorf("its %s is missing or no JSON object; API servers always send it", part)
		}
	}
	return nil
}

// decodePod is decode for a pod. It refuses one that is too large to be searched.
func decodePod(req admission.Request, raw runtime.RawExtension, parts ...string) (*corev1.Pod, error) {
	pod, err := decode[corev1.Pod](raw, parts...)
	if err != nil {
		return nil, err
	}
	if with := apps.Crowded(pod); with != "" {
		return nil, fmt.Errorf("the pod has %s", with)
	}
	pod.Namespace = req.Namespace
	return pod, nil
}
