package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stayput/stayput/inplace"
)

// entry is a row of a table: a label or an annotation for users to set.
type entry struct {
	constant
	On, Values, Default string
}

// settings is the data of the page.
type settings struct {
	Labels, Annotations, Requests []entry
	Flags                         []flagged
}

// labelRows and requestRows are the settings that are not in inplace.Annotations.
var (
	labelRows = []entry{
		{constant{Value: inplace.LabelUpdate}, "namespace or workload", "`" + string(inplace.ModeInPlace) + "`, `" +
			string(inplace.ModeInPlaceOnly) + "`; on a workload also `" + inplace.Native + "`", "none: updates are native"},
		{constant{Value: inplace.LabelKinds}, "namespace",
			"`deployments`, `daemonsets`, `statefulsets`, or several, in this order, with dots between",
			"`" + inplace.DefaultKinds + "`"},
	}
	requestRows = []entry{
		{constant{Value: inplace.AnnotationRestartPrefix}, "the pod template", "any text, such as a time", ""},
		{constant{Value: inplace.AnnotationRestartContainers}, "a pod", "names of containers, comma-separated", ""},
		{constant{Value: inplace.AnnotationRestartDeadline}, "a pod", "a time in RFC 3339", ""},
	}
)

// annotationRows returns a row for each of inplace.Annotations.
func annotationRows() (all []entry) {
	for _, each := range inplace.Annotations {
		on := "all"
		if len(each.Kinds) > 0 {
			on = strings.Join(each.Kinds, ", ")
		}
		all = append(all, entry{constant{Value: each.Key}, on, each.Values, each.Default})
	}
	return append(all, entry{constant{Value: inplace.AnnotationLocked}, "namespace only", "names of settings, comma-separated", "none"})
}

// readSettings returns the settings and the managers' flags. Each setting must be a constant with a comment.
func readSettings() (settings, error) {
	s := settings{Labels: labelRows, Annotations: annotationRows(), Requests: requestRows}
	for _, rows := range [][]entry{s.Labels, s.Annotations, s.Requests} {
		for i := range rows {
			var found []constant
			named := in("", "Label", "Annotation")
			if err := constants("inplace", func(c constant) bool { return named(c) && c.Value == rows[i].Value }, &found); err != nil {
				return s, fmt.Errorf("%s: %w", rows[i].Value, err)
			}
			rows[i].constant = found[0]
		}
	}
	help, err := helpOf(manager, "manager")
	if err == nil {
		s.Flags, err = flagsIn(help)
	}
	return s, err
}

// flagged is a flag of the managers.
type flagged struct{ Name, Value, Default, Doc string }

var (
	flagLine     = regexp.MustCompile(`(?m)^  -([a-z-]+)(?: ([a-z]+))?\n    \t(.*)$`)
	printed      = regexp.MustCompile(` \(default "?([^")]+)"?\)$`)
	fromVariable = regexp.MustCompile(`; by default (\$\w+)$`)
)

// flagsIn returns the flags in a help text that package flag has printed. Those of the logger are left out: another project describes them.
func flagsIn(help string) ([]flagged, error) {
	var all []flagged
	for _, match := range flagLine.FindAllStringSubmatch(help, -1) {
		if strings.HasPrefix(match[1], "zap-") {
			continue
		}
		f := flagged{Name: match[1], Value: match[2], Doc: match[3], Default: "none"}
		for _, form := range []*regexp.Regexp{printed, fromVariable} {
			if found := form.FindStringSubmatch(f.Doc); found != nil {
				f.Default, f.Doc = "`"+found[1]+"`", strings.TrimSuffix(f.Doc, found[0])
			}
		}
		f.Doc = strings.ToUpper(f.Doc[:1]) + f.Doc[1:]
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no flags in %s", strconv.Quote(help))
	}
	return all, nil
}
