package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node mounts volumes that are attached to it: first where the kubelet stages them, and from there into pods.
type node struct {
	csi.UnimplementedNodeServer
	volumes
	name string
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (*node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}}}}}, nil
}

// NodeStageVolume refuses a volume that is not attached to this node. So a test would fail in which two nodes have it at a time.
func (n *node) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	volume, target := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := n.mountable(volume, target, request.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if at, err := n.attachedTo(volume); err != nil || at != n.name {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is attached to %q, and this is %s: %v", volume, at, n.name, err)
	}
	return &csi.NodeStageVolumeResponse{}, bind(n.path(volume, "data"), target, false)
}

func (n *node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	staged, target := request.GetStagingTargetPath(), request.GetTargetPath()
	if err := n.mountable(request.GetVolumeId(), target, request.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if mounted, err := isMounted(staged); err != nil || !mounted {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %q is not staged at %q: %v", request.GetVolumeId(), staged, err)
	}
	return &csi.NodePublishVolumeResponse{}, bind(staged, target, request.GetReadonly())
}

func (n *node) mountable(volume, target string, capability *csi.VolumeCapability) error {
	if volume == "" || target == "" || capability == nil {
		return status.Error(codes.InvalidArgument, "volume, path and capability are required")
	}
	if err := usable(capability); err != nil {
		return err
	}
	return n.check(volume)
}

// NodeUnstageVolume leaves the folder, which the kubelet has made.
func (n *node) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := n.unmount(request.GetVolumeId(), request.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodeUnpublishVolume removes the folder, which NodePublishVolume has made.
func (n *node) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := n.unmount(request.GetVolumeId(), request.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := os.Remove(request.GetTargetPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *node) unmount(volume, target string) error {
	if target == "" {
		return status.Error(codes.InvalidArgument, "no path")
	}
	if err := n.check(volume); err != nil {
		return err
	}
	if mounted, err := isMounted(target); err != nil || !mounted {
		return err
	}
	return unix.Unmount(target, 0)
}

// bind mounts source at target, unless something is mounted there.
func bind(source, target string, readOnly bool) error {
	if mounted, err := isMounted(target); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil || !readOnly {
		return err
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// isMounted reports whether something is mounted at a path, which need not exist.
func isMounted(path string) (bool, error) {
	mounted, err := mountinfo.Mounted(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mounted, err
}
