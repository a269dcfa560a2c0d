package process

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestKilledProcessIsGone(t *testing.T) {
	started, err := Start([]string{"/bin/sleep", "1000"}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if !started.Alive() || started.Gone() {
		t.Fatalf("alive %v, gone %v after the start", started.Alive(), started.Gone())
	}
	if err := started.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := started.WaitGone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if started.Alive() {
		t.Error("alive and gone")
	}
}

func TestProcessWithAnotherStartTimeIsNotOurs(t *testing.T) {
	own, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !own.Alive() {
		t.Error("this process is not alive")
	}
	reused := Process{PID: own.PID, Started: own.Started - 1}
	if reused.Alive() || !reused.Gone() {
		t.Errorf("alive %v, gone %v for a process whose pid was reused", reused.Alive(), reused.Gone())
	}
	if err := reused.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("signal to a process whose pid was reused: %v", err)
	}
}

func TestAge(t *testing.T) {
	own, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if age, err := own.Age(); err != nil || age < 0 || age > time.Hour {
		t.Errorf("this process is %v old (%v)", age, err)
	}
}

func TestParseStatWithParenthesisInTheName(t *testing.T) {
	got, err := parseStat("7 (a) Z (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21")
	if err != nil || got.zombie || got.started != 4242 {
		t.Errorf("got %+v, %v; want started 4242 and no zombie", got, err)
	}
}

func TestListenerIsFoundWithItsProcess(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		socket, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("this machine has no %s: %v", address, err)
		}
		defer socket.Close()
		want := socket.Addr().(*net.TCPAddr).AddrPort()
		if pid := holderOf(t, want); pid != os.Getpid() {
			t.Errorf("%s is held by process %d, want %d", want, pid, os.Getpid())
		}
	}
}

func TestListensOnSocketWhosePathIsTaken(t *testing.T) {
	own, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := own.ListensOn(path); err != nil {
		t.Errorf("after the path was removed: %v", err)
	}
	if err := (Process{PID: 1}).ListensOn(path); err == nil {
		t.Error("process 1 listens, too")
	}
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	if err := own.ListensOn(path); err == nil {
		t.Error("it listens although the socket is closed")
	}
}

func TestBlocks(t *testing.T) {
	wanted := netip.MustParseAddrPort("127.0.0.1:5000")
	for listener, want := range map[string]bool{
		"127.0.0.1:5000": true, "0.0.0.0:5000": true, "[::]:5000": true, "[::ffff:127.0.0.1]:5000": true,
		"127.0.0.1:5001": false, "10.0.0.1:5000": false, "[::1]:5000": false,
	} {
		if got := (Listener{Address: netip.MustParseAddrPort(listener)}).Blocks(wanted); got != want {
			t.Errorf("%s blocks %s: %v, want %v", listener, wanted, got, want)
		}
	}
}

func holderOf(t *testing.T, address netip.AddrPort) int {
	t.Helper()
	listeners, err := Listeners()
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners {
		if listener.Blocks(address) {
			pid, _ := listener.Holder()
			return pid
		}
	}
	return 0
}
