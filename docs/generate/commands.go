package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stayput/stayput/cmd/kubectl-stayput/commands"
)

const manager = "./cmd/stayput"

// commandLine is the data of the page.
type commandLine struct {
	Usage       string
	Environment []constant
	Plugin      []*cobra.Command
}

// readCommands returns what the programs say of themselves.
func readCommands() (c commandLine, err error) {
	if c.Usage, err = usageOf(manager); err != nil {
		return c, err
	}
	c.Plugin = commands.New(genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}).Commands()
	return c, constants(manager, in("environment.go", "env"), &c.Environment)
}

// Described returns how a command of the plugin describes itself: its usage, its examples and its own flags.
func (c commandLine) Described(name string) (string, error) {
	at := slices.IndexFunc(c.Plugin, func(each *cobra.Command) bool { return each.Name() == name })
	if at < 0 {
		return "", fmt.Errorf("the plugin has no command %s", name)
	}
	command := c.Plugin[at]
	text := "Usage:\n  " + command.UseLine() + "\n"
	if command.HasExample() {
		text += "\nExamples:\n" + command.Example + "\n"
	}
	return text + "\nFlags:\n" + command.LocalFlags().FlagUsages(), nil
}

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
