package main

import (
	"context"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// attachDelay is the attribute of a volume that says how long it takes to attach it, as a Go duration.
const attachDelay = "attachDelay"

// controller attaches each volume to one node at a time.
type controller struct {
	csi.UnimplementedControllerServer
	volumes
	nodes []string
}

func (*controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (
	*csi.ControllerGetCapabilitiesResponse, error) {
	var can []*csi.ControllerServiceCapability
	for _, rpc := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	} {
		can = append(can, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: rpc}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: can}, nil
}

func (c *controller) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	name, capacity := request.GetName(), request.GetCapacityRange().GetRequiredBytes()
	if !isName(name) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no name of a volume", name)
	}
	if err := usable(request.GetVolumeCapabilities()...); err != nil {
		return nil, err
	}
	if request.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "volumes begin empty")
	}
	if _, err := delayOf(request.GetParameters()); err != nil {
		return nil, err
	}
	if err := c.create(name, capacity); err != nil {
		return nil, err
	}
	created := &csi.Volume{VolumeId: name, CapacityBytes: capacity, VolumeContext: request.GetParameters()}
	return &csi.CreateVolumeResponse{Volume: created}, nil
}

func (c *controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	switch err := c.check(request.GetVolumeId()); status.Code(err) {
	case codes.NotFound:
		return &csi.DeleteVolumeResponse{}, nil
	case codes.OK:
		return &csi.DeleteVolumeResponse{}, c.remove(request.GetVolumeId())
	default:
		return nil, err
	}
}

func (c *controller) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (
	*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := c.check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	asked := request.GetVolumeCapabilities()
	if len(asked) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no capabilities")
	}
	if err := usable(asked...); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: asked, VolumeContext: request.GetVolumeContext(), Parameters: request.GetParameters()}}, nil
}

// ControllerPublishVolume attaches the volume after its delay. The request ends earlier if the caller gives up.
func (c *controller) ControllerPublishVolume(ctx context.Context, request *csi.ControllerPublishVolumeRequest) (
	*csi.ControllerPublishVolumeResponse, error) {
	volume, node := request.GetVolumeId(), request.GetNodeId()
	if err := c.publishable(request); err != nil {
		return nil, err
	}
	delay, err := delayOf(request.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if attached, err := c.attached(volume, node); attached || err != nil {
		return &csi.ControllerPublishVolumeResponse{}, err
	}
	select {
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-time.After(delay):
	}
	if err := c.attach(volume, node); err != nil {
		return nil, status.Errorf(codes.Aborted, "volume %q was attached meanwhile, or cannot be: %v", volume, err)
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (c *controller) publishable(request *csi.ControllerPublishVolumeRequest) error {
	if request.GetVolumeId() == "" || request.GetNodeId() == "" || request.GetVolumeCapability() == nil {
		return status.Error(codes.InvalidArgument, "volume, node and capability are required")
	}
	if err := usable(request.GetVolumeCapability()); err != nil {
		return err
	}
	if err := c.check(request.GetVolumeId()); err != nil {
		return err
	}
	return c.knows(request.GetNodeId())
}

func (c *controller) knows(node string) error {
	if !slices.Contains(c.nodes, node) {
		return status.Errorf(codes.NotFound, "there is no node %q", node)
	}
	return nil
}

// attached reports whether the volume is attached to the node, and returns an error if it is attached to another.
func (c *controller) attached(volume, node string) (bool, error) {
	at, err := c.attachedTo(volume)
	if err == nil && at != "" && at != node {
		err = status.Errorf(codes.FailedPrecondition, "volume %q is attached to %s", volume, at)
	}
	return at == node, err
}

func (c *controller) ControllerUnpublishVolume(_ context.Context, request *csi.ControllerUnpublishVolumeRequest) (
	*csi.ControllerUnpublishVolumeResponse, error) {
	volume, node := request.GetVolumeId(), request.GetNodeId()
	switch err := c.check(volume); status.Code(err) {
	case codes.NotFound:
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	case codes.OK:
	default:
		return nil, err
	}
	if at, err := c.attachedTo(volume); err != nil || node != "" && at != node {
		return &csi.ControllerUnpublishVolumeResponse{}, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, c.detach(volume)
}

// delayOf returns how long a volume with these attributes takes to be attached.
func delayOf(attributes map[string]string) (time.Duration, error) {
	text, says := attributes[attachDelay]
	if !says {
		return 0, nil
	}
	delay, err := time.ParseDuration(text)
	if err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %v", attachDelay, err)
	}
	return delay, nil
}

// usable returns an error unless a volume can be used like this: mounted, on one node.
func usable(capabilities ...*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "no capability")
	}
	for _, each := range capabilities {
		switch mode := each.GetAccessMode().GetMode(); {
		case each.GetMount() == nil:
			return status.Error(codes.InvalidArgument, "a volume can only be mounted")
		case mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:
			return status.Errorf(codes.InvalidArgument, "the access mode is SINGLE_NODE_WRITER, not %s", mode)
		}
	}
	return nil
}
