package component

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/pki"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

// controlPlane has the flags that kubeadm sets, if they matter to what runs in the cluster. There is one process of each component, so none
// waits for a leader's lease.
func controlPlane(dir layout.Dir) []Component {
	return []Component{etcd(dir), apiServer(dir), controllerManager(dir), scheduler(dir), proxy(dir)}
}

// etcd does not sync to the disk: the data need not survive a crash of the machine, and it survives a crash of etcd.
func etcd(dir layout.Dir) Component {
	return Component{
		Name: "etcd",
		Argv: []string{
			dir.Bin("etcd"),
			"--data-dir=" + dir.Data("etcd"),
			"--listen-client-urls=" + plan.EtcdURL,
			"--advertise-client-urls=" + plan.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=default=http://127.0.0.1:2380",
			"--unsafe-no-fsync",
			"--quota-backend-bytes=4294967296",
			"--log-level=warn",
		},
		Listens: listens("127.0.0.1:2379", "127.0.0.1:2380"),
		Ready:   answers(plan.EtcdURL + "/readyz"),
	}
}

func apiServer(dir layout.Dir) Component {
	pair := func(name string) (certificate, key string) { return dir.PKI(name + ".crt"), dir.PKI(name + ".key") }
	serving, servingKey := pair(pki.APIServer)
	kubelet, kubeletKey := pair(pki.KubeletClient)
	frontProxy, frontProxyKey := pair(pki.FrontProxyClient)
	audit, admission, webhooks := dir.Data("kube-apiserver", "audit.yaml"),
		dir.Data("kube-apiserver", "admission.yaml"), dir.Data("kube-apiserver", "webhooks.kubeconfig")
	return Component{
		Name: "kube-apiserver",
		Argv: append([]string{
			dir.Bin("kube-apiserver"),
			"--bind-address=" + plan.ControlPlaneIP,
			"--advertise-address=" + plan.ControlPlaneIP,
			"--secure-port=6443",
			"--tls-cert-file=" + serving,
			"--tls-private-key-file=" + servingKey,
			"--etcd-servers=" + plan.EtcdURL,
			"--service-cluster-ip-range=" + plan.ServiceCIDR,
			"--allow-privileged",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--enable-aggregator-routing", // calls webhooks at their pods' addresses
			"--admission-control-config-file=" + admission,
			"--kubelet-client-certificate=" + kubelet,
			"--kubelet-client-key=" + kubeletKey,
			"--kubelet-preferred-address-types=InternalIP",
			"--proxy-client-cert-file=" + frontProxy,
			"--proxy-client-key-file=" + frontProxyKey,
			"--requestheader-allowed-names=" + pki.FrontProxyClient,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--service-account-issuer=https://kubernetes.default.svc." + plan.Domain,
			"--service-account-key-file=" + dir.PKI(pki.ServiceAccountKey+".key"),
			"--service-account-signing-key-file=" + dir.PKI(pki.ServiceAccountKey+".key"),
			"--audit-policy-file=" + audit,
			"--audit-log-path=" + dir.Data("kube-apiserver", "audit.log"),
			"--audit-log-maxsize=64", // MB
			"--audit-log-maxbackup=1",
		}, authorities(dir)...),
		Files: map[string]string{
			audit:     auditPolicy,
			admission: fmt.Sprintf(admissionConfiguration, webhooks),
			webhooks:  fmt.Sprintf(webhookCertificate, frontProxy, frontProxyKey),
		},
		Listens: listens(plan.ControlPlaneIP + ":6443"),
		After:   []string{"etcd"},
		Ready:   answers(plan.APIServerURL + "/readyz"),
	}
}

// auditPolicy logs the requests of Stayput, without their bodies: e2e checks whether Stayput uses all its rights.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["system:serviceaccount:stayput-system:stayput"]
`

// admissionConfiguration makes the API server call webhooks with the kubeconfig webhookCertificate: Stayput's webhooks are shown the front
// proxy's certificate, as docs/explanation/security.md proposes.
const (
	admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: MutatingAdmissionWebhook
    configuration: &webhooks
      apiVersion: apiserver.config.k8s.io/v1
      kind: WebhookAdmissionConfiguration
      kubeConfigFile: %s
  - name: ValidatingAdmissionWebhook
    configuration: *webhooks
`
	webhookCertificate = `apiVersion: v1
kind: Config
users:
  - name: stayput-webhook.stayput-system.svc
    user:
      client-certificate: %s
      client-key: %s
`
)

// controllerManager makes folders of the machine for the claims of make conformance. The nodes share the machine.
func controllerManager(dir layout.Dir) Component {
	return controller(dir, "kube-controller-manager", "127.0.0.1:10257", append([]string{
		"--use-service-account-credentials", // each controller has its own user name
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--cluster-signing-cert-file=" + dir.PKI(pki.CA+".crt"),
		"--cluster-signing-key-file=" + dir.PKI(pki.CA+".key"),
		"--root-ca-file=" + dir.PKI(pki.CA+".crt"),
		"--service-account-private-key-file=" + dir.PKI(pki.ServiceAccountKey+".key"),
		"--service-cluster-ip-range=" + plan.ServiceCIDR,
		"--enable-hostpath-provisioner",
		"--flex-volume-plugin-dir=" + dir.Data("kube-controller-manager", "volume-plugins"), // otherwise it makes one in /usr/libexec
	}, authorities(dir)...))
}

func scheduler(dir layout.Dir) Component {
	return controller(dir, "kube-scheduler", "127.0.0.1:10259", nil)
}

// controller is a component of k8s.io/kubernetes that serves only its health at address.
func controller(dir layout.Dir, name, address string, flags []string) Component {
	kubeconfig := pki.Kubeconfig(dir, name)
	host, port, _ := strings.Cut(address, ":")
	return Component{
		Name: name,
		Argv: append([]string{
			dir.Bin(name),
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + host,
			"--secure-port=" + port,
			"--leader-elect=false",
		}, flags...),
		Listens: listens(address),
		After:   []string{"kube-apiserver"},
		Ready:   answers("https://" + address + "/healthz"),
	}
}

// authorities are the flags that name the certificate authorities which a serving component trusts.
func authorities(dir layout.Dir) []string {
	return []string{
		"--client-ca-file=" + dir.PKI(pki.CA+".crt"),
		"--requestheader-client-ca-file=" + dir.PKI(pki.FrontProxyCA+".crt"),
	}
}

// proxy serves all nodes, because they share the machine's network. It runs as the first node.
func proxy(dir layout.Dir) Component {
	config := dir.Data("kube-proxy", "config.yaml")
	return Component{
		Name: "kube-proxy",
		Argv: []string{dir.Bin("kube-proxy"), "--config=" + config},
		Files: map[string]string{config: fill(proxyConfig, map[string]string{
			"kubeconfig": pki.Kubeconfig(dir, "kube-proxy"),
			"node":       plan.Node(1).Name(),
			"pods":       plan.PodCIDR,
		})},
		Listens: listens("127.0.0.1:10249", "127.0.0.1:10256"),
		After:   []string{"kube-apiserver"},
		Ready:   answers("http://127.0.0.1:10256/healthz"),
	}
}

// proxyConfig leaves the machine's sysctls as they are.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: {kubeconfig}
hostnameOverride: {node}
mode: nftables
clusterCIDR: {pods}
nodePortAddresses: ["{pods}"]
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
oomScoreAdj: 0
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`

// Kubernetes are the names under which the binary of Kubernetes and etcd runs.
var Kubernetes = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}

// OfKubernetes reports whether the component is in Kubernetes' binary.
func (c Component) OfKubernetes() bool {
	return slices.Contains(Kubernetes, filepath.Base(c.Argv[0]))
}
