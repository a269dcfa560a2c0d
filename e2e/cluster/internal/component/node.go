package component

import (
	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/pki"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

func containerd(dir layout.Dir, node plan.Node) Component {
	name := "containerd-" + node.Name()
	config := dir.Data(name, "config.toml")
	values := map[string]string{
		"data":     dir.Data(name),
		"bin":      dir.Bin(),
		"pause":    plan.PauseImage,
		"registry": plan.RegistryAddress,
		"bridge":   node.Bridge(),
		"subnet":   node.Subnet().String(),
		"gateway":  node.IP(),
	}
	return Component{
		Name: name,
		Argv: []string{dir.Bin("containerd"), "--config=" + config},
		Files: map[string]string{
			config: fill(containerdConfig, values),
			dir.Data(name, "cni", "10-bridge.conflist"):                      fill(networkConfig, values),
			dir.Data(name, "registries", plan.RegistryAddress, "hosts.toml"): fill(registryConfig, values),
		},
		Ready: accepts(containerdSocket(dir, node)),
	}
}

func containerdSocket(dir layout.Dir, node plan.Node) string {
	return dir.Data("containerd-"+node.Name(), "containerd.sock")
}

// containerdConfig disables two plugins: opt would make /opt/containerd, and nri would share a socket between the nodes. Without
// CAP_SYS_RESOURCE containers cannot get the OOM score that their kubelet asks for.
const containerdConfig = `version = 3
root = "{data}/root"
state = "{data}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{data}/containerd.sock"

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "{data}/registries"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{bin}/cni"]
conf_dir = "{data}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{bin}/runc"
Root = "{data}/runc"
SystemdCgroup = false
`

// networkConfig uses hairpin mode: the bridge also delivers to a pod what the pod sent to itself through a Service.
const networkConfig = `{
  "cniVersion": "1.0.0",
  "name": "{bridge}",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "{bridge}",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "{data}/addresses",
        "ranges": [[{"subnet": "{subnet}", "gateway": "{gateway}"}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}, "backend": "nftables"}
  ]
}
`

const registryConfig = `server = "http://{registry}"

[host."http://{registry}"]
capabilities = ["pull", "resolve"]
`

// kubelet waits for its containerd. It would exit without containerd's socket.
func kubelet(dir layout.Dir, node plan.Node) Component {
	name := "kubelet-" + node.Name()
	config := dir.Data(name, "config.yaml")
	return Component{
		Name: name,
		Argv: []string{
			dir.Bin("kubelet"),
			"--config=" + config,
			"--kubeconfig=" + pki.Kubeconfig(dir, node.Name()),
			"--root-dir=" + dir.Data(name, "root"),
			"--cert-dir=" + dir.Data(name, "pki"),
			"--hostname-override=" + node.Name(),
			"--node-ip=" + node.IP(),
		},
		Files: map[string]string{config: fill(kubeletConfig, map[string]string{
			"ca":     dir.PKI(pki.CA + ".crt"),
			"ip":     node.IP(),
			"cgroup": node.Cgroup(),
			"dns":    plan.DNSServiceIP,
			"domain": plan.Domain,
			"socket": containerdSocket(dir, node),
			"data":   dir.Data(name),
		})},
		Listens: listens(node.IP()+":10250", node.IP()+":10248"),
		Socket:  "/var/lib/kubelet/device-plugins/kubelet.sock", // fixed in k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1
		After:   []string{"kube-apiserver", "containerd-" + node.Name()},
		Ready:   answers("http://" + node.IP() + ":10248/healthz"),
	}
}

// kubeletConfig never evicts pods because of the machine's disk, which the nodes share with each other and with other programs. It never
// removes images from the disk. It makes no chains of iptables, because they would stay.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {ip}
port: 10250
healthzBindAddress: {ip}
healthzPort: 10248
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: {ca}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
failCgroupV1: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
failSwapOn: false
oomScoreAdj: 0
maxPods: 250
makeIPTablesUtilChains: false
clusterDNS: [{dns}]
clusterDomain: {domain}
containerRuntimeEndpoint: unix://{socket}
podLogsDir: {data}/logs
volumePluginDir: {data}/volume-plugins
imageGCHighThresholdPercent: 100
evictionHard:
  imagefs.available: 0%
  nodefs.available: 0%
  nodefs.inodesFree: 0%
`
