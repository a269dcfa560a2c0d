package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// handler answers one kind of request. An error says that the request could not be decided: it is allowed unless the answer denies it.
type handler func(context.Context, admission.Request) (answer, error)

// answer is a response, and the decision that it is counted as.
type answer struct {
	admission.Response
	made decision
}

func allow() answer { return answer{Response: admission.Allowed("")} }

func undecided(err error) answer {
	warning := fmt.Sprintf("stayput: allowed without a decision: %v", err)
	return answer{Response: admission.Allowed("").WithWarnings(line(warning)), made: failed}
}

func patch(made decision, operations []jsonpatch.Operation) answer {
	return answer{Response: admission.Patched("", operations...), made: made}
}

// deny returns a denial with the status of the error: the client that made the request sees it.
func deny(made decision, why *apierrors.StatusError) answer {
	response := admissionv1.AdmissionResponse{Allowed: false, Result: &why.ErrStatus}
	return answer{Response: admission.Response{AdmissionResponse: response}, made: made}
}

// refusal returns the error with which a deletion of the object is refused.
type refusal func(resource schema.GroupResource, name string) *apierrors.StatusError

// heldMessage says in events and logs of native controllers that nothing is wrong.
const heldMessage = "held: stayput updates the pods of this workload in place"

// notFound tells a native controller that the object is gone already. It does not try again, and records no failure.
func notFound(resource schema.GroupResource, name string) *apierrors.StatusError {
	gone := apierrors.NewNotFound(resource, name)
	gone.ErrStatus.Message = heldMessage
	return gone
}

// conflict tells a native controller that the object is still there. It tries again later.
func conflict(resource schema.GroupResource, name string) *apierrors.StatusError {
	refused := apierrors.NewConflict(resource, name, errors.New(heldMessage))
	refused.ErrStatus.Message = heldMessage
	return refused
}

// ifHeld returns the refusal if the object stays, and nil otherwise, as where an error has kept that from being known.
func (refuse refusal) ifHeld(stays bool, err error) (refusal, error) {
	if !stays || err != nil {
		return nil, err
	}
	return refuse, nil
}

// deletion returns the answer to the deletion of an object by a native controller: a refusal unless refuse is nil.
func deletion(req admission.Request, refuse refusal) answer {
	if refuse == nil {
		return allow()
	}
	return deny(held, refuse(schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}, req.Name))
}

// lineLength is the length of a warning that kubectl and the API server still show in full (apiserver/pkg/endpoints/filters/warning.go).
const lineLength = 256

func line(text string) string {
	if len(text) <= lineLength {
		return text
	}
	return strings.ToValidUTF8(text[:lineLength-3], "") + "..."
}

// briefly returns the error with its text cut: it may quote a request, and logs and spans have it.
func briefly(err error) error { return errors.New(line(err.Error())) }
