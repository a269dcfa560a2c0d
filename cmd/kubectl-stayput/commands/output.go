package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is how a result is printed: as text for people if it is empty, otherwise for programs as one of outputs.
type output string

var outputs = []string{"json", "yaml"}

// register adds the flag -o.
func (o *output) register(command *cobra.Command) {
	command.Flags().FuncP("output", "o", "the `format`, "+strings.Join(outputs, " or ")+"; text if empty", func(format string) error {
		if format != "" && !slices.Contains(outputs, format) {
			return fmt.Errorf("unknown output %q; it is %s", format, strings.Join(outputs, " or "))
		}
		*o = output(format)
		return nil
	})
}

// print prints the result, or lets text print it.
func (o *output) print(out io.Writer, result any, text func(io.Writer) error) error {
	switch *o {
	case "":
		return text(out)
	case "yaml":
		printed, err := yaml.Marshal(result)
		if err != nil {
			return err
		}
		_, err = out.Write(printed)
		return err
	default:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
}
