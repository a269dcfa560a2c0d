// Package process starts processes that outlive the launcher. It finds them again by pid and start time, so that it never mistakes a
// process with a reused pid for an earlier one.
package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is one process. The zero value is a process that is gone.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time, in clock ticks since boot (field 22 of /proc/PID/stat).
	Started uint64 `json:"started"`
}

// Start runs argv in its own session, so that it outlives the launcher and Ctrl-C does not reach it. Its output is appended to the file
// log. Its PATH begins with the directory of argv[0].
func Start(argv []string, log string) (Process, error) {
	output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return Process{}, err
	}
	defer output.Close()
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir = "/"
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(argv[0])+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return Process{}, err
	}
	go func() { _ = command.Wait() }() // the log shows how it ended
	stat, err := readStat(command.Process.Pid)
	if err != nil {
		return Process{}, fmt.Errorf("%s exited at once: its last words are in %s", argv[0], log)
	}
	return Process{PID: command.Process.Pid, Started: stat.started}, nil
}

// Alive reports whether the process still runs.
func (p Process) Alive() bool {
	stat, err := readStat(p.PID)
	return err == nil && stat.started == p.Started && !stat.zombie
}

// Gone reports whether nothing is left of the process. A zombie can have threads that have not ended yet, and with them the ports that it
// listened on.
func (p Process) Gone() bool {
	stat, err := readStat(p.PID)
	if err != nil || stat.started != p.Started {
		return true
	}
	threads, err := os.ReadDir(procPath(p.PID, "task"))
	return err != nil || stat.zombie && len(threads) <= 1
}

// WaitGone returns when the process is Gone or ctx has ended.
func (p Process) WaitGone(ctx context.Context) error {
	for !p.Gone() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d does not end: %w", p.PID, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// Signal sends signal. It returns no error if the process is no longer alive.
func (p Process) Signal(signal syscall.Signal) error {
	handle, err := os.FindProcess(p.PID) // a pidfd: from here on another process cannot get the pid
	if err != nil {
		return err
	}
	defer handle.Release()
	if !p.Alive() {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// Age returns the time since the process was started.
func (p Process) Age() (time.Duration, error) {
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	var seconds float64
	if _, err := fmt.Sscan(string(uptime), &seconds); err != nil {
		return 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	const ticksPerSecond = 100 // USER_HZ, fixed on all of Go's architectures
	return time.Duration((seconds - float64(p.Started)/ticksPerSecond) * float64(time.Second)), nil
}

// RSS returns the resident memory in bytes.
func (p Process) RSS() (int64, error) {
	statm, err := os.ReadFile(procPath(p.PID, "statm"))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0, fmt.Errorf("%s: %w", procPath(p.PID, "statm"), err)
	}
	return resident * int64(os.Getpagesize()), nil
}

// Of returns the process that has pid now.
func Of(pid int) (Process, error) {
	stat, err := readStat(pid)
	return Process{PID: pid, Started: stat.started}, err
}

// Name returns the name of the program that pid runs, for example "etcd".
func Name(pid int) string {
	if arguments := Arguments(pid); len(arguments) > 0 {
		return filepath.Base(arguments[0])
	}
	return "an unknown process"
}

// Arguments returns the command line of pid. It is empty for a process that is gone, and for the kernel's own.
func Arguments(pid int) []string {
	line, err := os.ReadFile(procPath(pid, "cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// Executable returns the path of the binary that pid runs, even if it has been deleted or replaced since.
func Executable(pid int) (string, error) {
	path, err := os.Readlink(procPath(pid, "exe"))
	return strings.TrimSuffix(path, " (deleted)"), err
}

// All returns the pids of this moment.
func All() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

type stat struct {
	zombie  bool
	started uint64
}

func readStat(pid int) (stat, error) {
	if pid <= 0 {
		return stat{}, fs.ErrNotExist
	}
	line, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(line))
}

// parseStat parses proc_pid_stat(5). The second field, the name, can contain any character.
func parseStat(line string) (stat, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const state, started = 3 - 3, 22 - 3 // numbered from 1 in the manual; fields begins with the third
	if len(fields) <= started {
		return stat{}, fmt.Errorf("no process: %q", line)
	}
	ticks, err := strconv.ParseUint(fields[started], 10, 64)
	return stat{zombie: fields[state] == "Z" || fields[state] == "X", started: ticks}, err
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
