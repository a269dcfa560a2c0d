package component

import (
	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/pki"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

func coreDNS(dir layout.Dir) Component {
	config := dir.Data("coredns", "Corefile")
	return Component{
		Name: "coredns",
		Argv: []string{dir.Bin("coredns"), "-conf=" + config},
		Files: map[string]string{config: fill(corefile, map[string]string{
			"ip":         plan.ControlPlaneIP,
			"domain":     plan.Domain,
			"kubeconfig": pki.Kubeconfig(dir, "coredns"),
		})},
		Listens: listens(plan.ControlPlaneIP+":53", plan.ControlPlaneIP+":8181"),
		After:   []string{"kube-apiserver", Addons},
		Ready:   answers("http://" + plan.ControlPlaneIP + ":8181/ready"),
	}
}

// corefile is kubeadm's without the plugins that lead out of the cluster.
const corefile = `.:53 {
    bind {ip}
    errors
    ready {ip}:8181
    kubernetes {domain} in-addr.arpa ip6.arpa {
        kubeconfig {kubeconfig}
        pods insecure
        ttl 30
    }
    cache 30
}
`

func certManager(dir layout.Dir) Component {
	const address = "127.0.0.1:9403"
	return Component{
		Name: "cert-manager",
		Argv: []string{
			dir.Bin("cert-manager"),
			"--kubeconfig=" + pki.Kubeconfig(dir, "cert-manager"),
			"--health-address=" + address,
		},
		Listens: listens(address),
		After:   []string{"kube-apiserver", Addons, CertManagerResources},
		Ready:   answers("http://" + address + "/readyz"),
	}
}

func kwok(dir layout.Dir) Component {
	const address = "127.0.0.1:10247"
	return Component{
		Name: "kwok",
		Argv: []string{
			dir.Bin("kwok"),
			"--kubeconfig=" + pki.Kubeconfig(dir, "kwok"),
			"--config=" + dir.Share("simulated", "stages.yaml"),
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--cidr=10.200.0.0/16", // of pods, which cannot be reached
			"--server-address=" + address,
		},
		Listens: listens(address),
		After:   []string{"kube-apiserver", Addons},
		Ready:   answers("http://" + address + "/readyz"),
	}
}
