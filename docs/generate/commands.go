package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// help is the description of flags that commands print.
type help struct {
	Commands []string
	Text     string
}

// flagged matches a command with flags in the program's own documentation: "stayput [manager] [flags]   ...".
var flagged = regexp.MustCompile(`(?m)^stayput \[?([a-z]+)\]?.* \[flags\]`)

// commands returns the usage of the program, as in the comment of its package, and the flags of its commands, as the commands print them.
func commands(program string) (usage string, flags []help, err error) {
	files, err := parse(program)
	if err != nil {
		return "", nil, err
	}
	for _, file := range files {
		usage += indented(file.Doc.Text())
	}
	folder, err := os.MkdirTemp("", "stayput-docs-")
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "stayput")
	if output, err := exec.Command("go", "build", "-o", binary, program).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build %s: %w\n%s", program, err, output)
	}
	for _, match := range flagged.FindAllStringSubmatch(usage, -1) {
		if flags, err = addHelp(flags, binary, match[1]); err != nil {
			return "", nil, err
		}
	}
	return usage, flags, nil
}

// indented returns the indented lines of a comment: its code.
func indented(comment string) string {
	var lines strings.Builder
	for line := range strings.Lines(comment) {
		if code, is := strings.CutPrefix(line, "\t"); is {
			lines.WriteString(code)
		}
	}
	return lines.String()
}

// addHelp asks a command for its flags, and adds them. Commands with the same flags share one entry.
func addHelp(known []help, binary, command string) ([]help, error) {
	asked := exec.Command(binary, command, "-h")
	asked.Env = []string{} // some defaults come from the environment
	output, err := asked.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("stayput %s -h: %w\n%s", command, err, output)
	}
	_, text, _ := strings.Cut(string(output), "\n") // Usage of ...
	if same := slices.IndexFunc(known, func(h help) bool { return h.Text == text }); same >= 0 {
		known[same].Commands = append(known[same].Commands, command)
		return known, nil
	}
	return append(known, help{Commands: []string{command}, Text: text}), nil
}
