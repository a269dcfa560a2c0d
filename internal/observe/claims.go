package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/inplace/readiness"
)

// mostClaims bounds how many claims of one template are read. A node can have about as many volumes attached.
const mostClaims = 128

// ClaimForOneNode returns the first of the claims that only one node, or one pod, can mount. It returns "" if there is
// none. A claim that does not exist, or that Stayput may not read, counts as a claim that any node can mount. If that
// is wrong, an update with surge pods notices it later.
func ClaimForOneNode(ctx context.Context, live client.Reader, namespace string, names []string) (string, error) {
	for _, name := range names[:min(len(names), mostClaims)] {
		claim := &corev1.PersistentVolumeClaim{}
		switch err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, claim); {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			log.FromContext(ctx).Error(err, "A PersistentVolumeClaim cannot be read, any node is assumed to be able to mount it", "claim", name)
		case err != nil:
			return "", fmt.Errorf("read PersistentVolumeClaim %s: %w", name, err)
		case readiness.SingleNode(claim):
			return name, nil
		}
	}
	return "", nil
}
