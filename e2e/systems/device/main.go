// Command device is a device plugin with one device, which is an environment variable: DEVICE has its name.
//
//	device -resource example.com/gpu -name node-1 -socket S   S is in the kubelet's folder plugins_registry
//
// It registers as drivers of DRA and CSI do, by that folder. The socket for device plugins has a fixed path, and kubelets of the test
// cluster share one machine.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	devices "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	var p plugin
	flag.StringVar(&p.resource, "resource", "", "the extended `resource` of which the node has one")
	flag.StringVar(&p.device, "name", "", "the `name` of the device")
	socket := flag.String("socket", "", "the `path` of the unix socket to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := p.serve(ctx, *socket); err != nil {
		log.Fatal(err)
	}
}

type plugin struct {
	devices.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	resource, device string
}

// serve serves until ctx ends. Closing the listener removes the socket, by which the kubelet knows that the plugin is gone.
func (p plugin) serve(ctx context.Context, socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	devices.RegisterDevicePluginServer(server, p)
	registration.RegisterRegistrationServer(server, p)
	context.AfterFunc(ctx, server.Stop)
	log.Printf("serving %s of %s at %s", p.device, p.resource, socket)
	return server.Serve(listener)
}

// GetInfo names no endpoint: it is the socket itself, whose path the kubelet knows better than a container does.
func (p plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DevicePlugin, Name: p.resource, SupportedVersions: []string{devices.Version}}, nil
}

func (plugin) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %t %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (plugin) GetDevicePluginOptions(context.Context, *devices.Empty) (*devices.DevicePluginOptions, error) {
	return &devices.DevicePluginOptions{}, nil
}

// ListAndWatch sends the device, which never changes.
func (p plugin) ListAndWatch(_ *devices.Empty, kubelet grpc.ServerStreamingServer[devices.ListAndWatchResponse]) error {
	has := &devices.ListAndWatchResponse{Devices: []*devices.Device{{ID: p.device, Health: devices.Healthy}}}
	if err := kubelet.Send(has); err != nil {
		return err
	}
	<-kubelet.Context().Done()
	return nil
}

func (p plugin) Allocate(_ context.Context, request *devices.AllocateRequest) (*devices.AllocateResponse, error) {
	log.Printf("allocating to %d containers", len(request.ContainerRequests))
	given := &devices.AllocateResponse{}
	for range request.ContainerRequests {
		gets := &devices.ContainerAllocateResponse{Envs: map[string]string{"DEVICE": p.device}}
		given.ContainerResponses = append(given.ContainerResponses, gets)
	}
	return given, nil
}
