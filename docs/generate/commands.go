package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const (
	manager = "./cmd/stayput"
	plugin  = "./cmd/kubectl-stayput"
)

// help is the description of flags that commands print.
type help struct {
	Commands []string
	Text     string
}

// commandLine is the data of the page.
type commandLine struct {
	Usage       string
	Flags       []help
	Environment []constant
	PluginUsage string
	PluginFlags []help
}

// readCommands returns what the programs say of themselves.
func readCommands() (c commandLine, err error) {
	if c.Usage, err = usageOf(manager); err != nil {
		return c, err
	}
	for _, command := range withFlags.FindAllStringSubmatch(c.Usage, -1) {
		if c.Flags, err = addHelp(c.Flags, command[1]); err != nil {
			return c, err
		}
	}
	if c.PluginUsage, err = output(plugin, "help"); err != nil {
		return c, err
	}
	c.PluginUsage, _, _ = strings.Cut(c.PluginUsage, "\n\n")
	plan, err := helpOf(plugin, "plan")
	if err != nil {
		return c, err
	}
	status, err := helpOf(plugin, "status")
	if err != nil {
		return c, err
	}
	audit, err := helpOf(plugin, "audit")
	if err != nil {
		return c, err
	}
	c.PluginFlags = []help{{[]string{"plan"}, ownFlags(plan, status)}, {[]string{"status"}, ownFlags(status, plan)},
		{[]string{"audit"}, ownFlags(audit, status)}}
	return c, constants(manager, in("environment.go", "env"), &c.Environment)
}

// withFlags matches a command with flags in the program's own documentation: "stayput [manager] [flags]   ...".
var withFlags = regexp.MustCompile(`(?m)^stayput \[?([a-z]+)\]?.* \[flags\]`)

// usageOf returns the usage of a program from the comment of its package.
func usageOf(program string) (usage string, err error) {
	files, err := parse(program)
	for _, file := range files {
		usage += indented(file.Doc.Text())
	}
	return usage, err
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

// addHelp asks a command of the manager for its flags, and adds them. Commands with the same flags share one entry.
func addHelp(known []help, command string) ([]help, error) {
	text, err := helpOf(manager, command)
	if same := slices.IndexFunc(known, func(h help) bool { return h.Text == text }); same >= 0 {
		known[same].Commands = append(known[same].Commands, command)
		return known, err
	}
	return append(known, help{Commands: []string{command}, Text: text}), err
}

// helpOf returns the flags of a command as the program prints them.
func helpOf(program, command string) (string, error) {
	text, err := output(program, command, "-h")
	_, flags, found := strings.Cut(text, "\n") // Usage of ...
	if err == nil && !found {
		err = fmt.Errorf("%s %s -h prints no flags: %q", program, command, text)
	}
	return flags, err
}

// output runs a program of this repository. Without the environment of a pod, so that defaults do not come from there.
func output(program string, arguments ...string) (string, error) {
	command := exec.Command("go", append([]string{"run", program}, arguments...)...)
	command.Env = append(os.Environ(), "POD_NAMESPACE=", "POD_NAME=")
	text, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", program, strings.Join(arguments, " "), err, text)
	}
	return string(text), err
}

var flagName = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// ownFlags returns the lines of a help text without the flags of every kubectl command, some of whose defaults depend on the machine. Those
// are the flags of the other command as well, apart from Stayput's.
func ownFlags(text, other string) string {
	inherited := map[string]bool{}
	for _, match := range flagName.FindAllStringSubmatch(other, -1) {
		inherited[match[1]] = !strings.HasPrefix(match[1], "stayput-")
	}
	var own strings.Builder
	for line := range strings.Lines(text) {
		if name := flagName.FindStringSubmatch(line); name == nil || !inherited[name[1]] {
			own.WriteString(line)
		}
	}
	return own.String()
}
