// Command csi is a CSI driver for the test cluster, whose nodes are one machine. A volume is a folder of that machine, so a pod finds its
// data on every node. Attaching a volume takes as long as the volume's attribute attachDelay says. That is what cloud disks cost.
//
//	csi -socket S -volumes F -nodes node-1,node-2   the controller service, which attaches volumes to these nodes
//	csi -socket S -volumes F -node node-1           the node service, in the kubelet's folder plugins_registry
//	csi -volumes F -create v                        creates the volume v, for a PersistentVolume that is not provisioned
//
// The node service registers itself, so there is no node-driver-registrar. It is a process of the machine, as kubelets of the test cluster
// are: a container's mounts would not reach them, because the machine's mounts need not be shared.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is in CSIDriver, CSINode, PersistentVolumes and VolumeAttachments.
const driverName = "systems.stayput.dev"

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	socket := flag.String("socket", "", "the `path` of the unix socket to serve at")
	folder := flag.String("volumes", "", "the `folder` with the volumes")
	node := flag.String("node", "", "serve the node service of this `node`")
	nodes := flag.String("nodes", "", "serve the controller service, for these `nodes`, separated by commas")
	create := flag.String("create", "", "create this `volume` and exit")
	flag.Parse()
	if *create != "" {
		if err := volumes(*folder).create(*create, 0); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *socket, driverOf(volumes(*folder), *node, *nodes)); err != nil {
		log.Fatal(err)
	}
}

// driver is the services of one process; a service that it does not have is nil.
type driver struct {
	controller *controller
	node       *node
}

func driverOf(in volumes, nodeName, nodeNames string) driver {
	var d driver
	if nodeName != "" {
		d.node = &node{name: nodeName, volumes: in}
	}
	if nodeNames != "" {
		d.controller = &controller{nodes: strings.Split(nodeNames, ","), volumes: in}
	}
	return d
}

// serve serves the driver until ctx ends. It then removes the socket, by which the kubelet knows that the driver is gone.
func serve(ctx context.Context, socket string, d driver) error {
	if d.controller == nil && d.node == nil {
		return errors.New("-node or -nodes is required")
	}
	if err := os.RemoveAll(socket); err != nil {
		return fmt.Errorf("the socket of an earlier process: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged))
	d.register(server, socket)
	context.AfterFunc(ctx, server.Stop)
	log.Printf("serving at %s", filepath.Clean(socket))
	return server.Serve(listener)
}

func (d driver) register(server *grpc.Server, socket string) {
	csi.RegisterIdentityServer(server, identity{attaches: d.controller != nil})
	if d.controller != nil {
		csi.RegisterControllerServer(server, d.controller)
	}
	if d.node != nil {
		csi.RegisterNodeServer(server, d.node)
		registration.RegisterRegistrationServer(server, registrar{socket: socket})
	}
}

// logged logs each call that changes something, and each error.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	switch method := filepath.Base(info.FullMethod); {
	case err != nil:
		log.Printf("%s of %q: %v", method, volumeOf(request), err)
	case strings.HasSuffix(method, "Volume"):
		log.Printf("%s of %q", method, volumeOf(request))
	}
	return answer, err
}

func volumeOf(request any) string {
	if of, is := request.(interface{ GetVolumeId() string }); is {
		return of.GetVolumeId()
	}
	return ""
}
