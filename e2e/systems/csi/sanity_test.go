package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestSanity runs csi-test against both services at one socket.
func TestSanity(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	folder := t.TempDir()
	config := sanity.NewTestConfig()
	config.Address = start(t, driverOf(volumes(filepath.Join(folder, "volumes")), "node-1", "node-1,node-2"))
	config.TargetPath, config.StagingPath = filepath.Join(folder, "target"), filepath.Join(folder, "staging")
	config.TestVolumeParameters = map[string]string{attachDelay: "1ms"}
	sanity.Test(t, config)
}

// start serves a driver until the test ends, and returns the path of its socket.
func start(t *testing.T, d driver) string {
	t.Helper()
	socket, ended := filepath.Join(t.TempDir(), "csi.sock"), make(chan error, 1)
	ctx, end := context.WithCancel(context.Background())
	go func() { ended <- serve(ctx, socket, d) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return socket
}

var mounted = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// attach attaches the volume v to a node.
func attach(ctx context.Context, c *controller, node string, attributes map[string]string) error {
	_, err := c.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: "v", NodeId: node, VolumeCapability: mounted, VolumeContext: attributes})
	return err
}

func newController(t *testing.T) *controller {
	t.Helper()
	c := driverOf(volumes(t.TempDir()), "", "node-1,node-2").controller
	if err := c.create("v", 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOneNodeAtATime is about what a second controller knows, too: it is another process with the same folder.
func TestOneNodeAtATime(t *testing.T) {
	c := newController(t)
	if err := attach(t.Context(), c, "node-1", nil); err != nil {
		t.Fatal(err)
	}
	again := &controller{nodes: c.nodes, volumes: c.volumes}
	if err := attach(t.Context(), again, "node-1", nil); err != nil {
		t.Errorf("attached a second time to the same node: %v", err)
	}
	if err := attach(t.Context(), again, "node-2", nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("attached to a second node: %v", err)
	}
	detach := &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "node-1"}
	if _, err := again.ControllerUnpublishVolume(t.Context(), detach); err != nil {
		t.Fatal(err)
	}
	if err := attach(t.Context(), c, "node-2", nil); err != nil {
		t.Errorf("detached, and then: %v", err)
	}
}

// TestAttachDelay ends a request during its delay.
func TestAttachDelay(t *testing.T) {
	c := newController(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := attach(ctx, c, "node-1", map[string]string{attachDelay: "1h"}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("not delayed: %v", err)
	}
	if at, err := c.attachedTo("v"); at != "" || err != nil {
		t.Errorf("attached to %q all the same: %v", at, err)
	}
	if err := attach(t.Context(), c, "node-1", map[string]string{attachDelay: "soon"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a delay that is none: %v", err)
	}
}

// TestStagedOnlyWhereAttached stages a volume on a node to which it is not attached.
func TestStagedOnlyWhereAttached(t *testing.T) {
	c := newController(t)
	if err := attach(t.Context(), c, "node-1", nil); err != nil {
		t.Fatal(err)
	}
	n := driverOf(c.volumes, "node-2", "").node
	_, err := n.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: "v", StagingTargetPath: filepath.Join(t.TempDir(), "staged"), VolumeCapability: mounted})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("staged: %v", err)
	}
}
