// Package pki makes the cluster's keys, certificates and kubeconfigs, with the names and groups that kubeadm uses. It keeps files that
// exist.
package pki

import (
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// ServiceAccountKey is the key that signs service account tokens. As everywhere in this package, it is the file's name without its
// directory and extension.
const ServiceAccountKey = "service-account"

// kube-apiserver uses KubeletClient towards kubelets, FrontProxyClient towards aggregated API servers, and APIServer towards its clients.
const (
	APIServer        = "kube-apiserver"
	KubeletClient    = "kube-apiserver-kubelet-client"
	FrontProxyClient = "front-proxy-client"
)

// There are two authorities, as with kubeadm: one for users and components, and one for what the API server tells an aggregated API server
// about a user.
const (
	CA           = "ca"
	FrontProxyCA = "front-proxy-ca"
)

// Ensure makes the missing files for so many nodes.
func Ensure(dir layout.Dir, nodes int) error {
	if err := os.MkdirAll(dir.PKI(), 0o700); err != nil {
		return err
	}
	if _, err := ensureKey(dir.PKI(ServiceAccountKey + ".key")); err != nil {
		return err
	}
	ca, err := ensureAuthority(dir, CA, "kubernetes")
	if err != nil {
		return err
	}
	frontProxyCA, err := ensureAuthority(dir, FrontProxyCA, "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := frontProxyCA.ensure(dir, certificate{name: FrontProxyClient, subject: name(FrontProxyClient)}); err != nil {
		return err
	}
	return ca.ensureAll(dir, nodes)
}

func (a *authority) ensureAll(dir layout.Dir, nodes int) error {
	kubeletClient := certificate{name: KubeletClient, subject: name(KubeletClient, "system:masters")}
	if err := errors.Join(a.ensure(dir, apiServer()), a.ensure(dir, kubeletClient)); err != nil {
		return err
	}
	for user, subject := range users(nodes) {
		if err := a.ensure(dir, certificate{name: user, subject: subject}); err != nil {
			return err
		}
		if err := a.ensureKubeconfig(dir, user); err != nil {
			return err
		}
	}
	return nil
}

// Kubeconfig returns the kubeconfig of the component or node name.
func Kubeconfig(dir layout.Dir, name string) string { return dir.PKI(name + ".kubeconfig") }

// users returns the subjects of all kubeconfigs, by their names.
func users(nodes int) map[string]pkix.Name {
	subjects := map[string]pkix.Name{
		"admin":                   name("kubernetes-admin", "system:masters"),
		"kube-controller-manager": name("system:kube-controller-manager"),
		"kube-scheduler":          name("system:kube-scheduler"),
		"kube-proxy":              name("system:kube-proxy"),
		"coredns":                 name("coredns"),
		"cert-manager":            name("cert-manager"),
		"kwok":                    name("kwok"),
	}
	for _, node := range plan.Nodes(nodes) {
		subjects[node.Name()] = name("system:node:"+node.Name(), "system:nodes")
	}
	return subjects
}

func apiServer() certificate {
	return certificate{
		name:    APIServer,
		subject: name(APIServer),
		hosts:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + plan.Domain},
		ips:     []net.IP{net.ParseIP(plan.ControlPlaneIP), net.ParseIP(plan.KubernetesServiceIP), net.IPv4(127, 0, 0, 1)},
	}
}

func name(user string, groups ...string) pkix.Name {
	return pkix.Name{CommonName: user, Organization: groups}
}

// replace replaces a file atomically, even if the launcher is interrupted.
func replace(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(temporary, path)
}
