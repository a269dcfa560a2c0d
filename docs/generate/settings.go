package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stayput/stayput/inplace"
)

// setting is a label or an annotation for users to set, with where it counts, its values and its default.
type setting struct {
	constant
	form
}

// form is what a table says of a setting besides its comment.
type form struct{ On, Values, Default string }

// settings is the data of the page.
type settings struct {
	Labels, Annotations []setting
	Flags               []flagged
}

const (
	everywhere = "namespace or workload"
	onWorkload = "workload"
)

// forms returns the forms of all settings. Values and defaults come from the code that parses them.
func forms() map[string]form {
	quoted, defaults := func(text any) string { return fmt.Sprintf("`%v`", text) }, inplace.SettingsOf(nil, nil)
	modes := quoted(inplace.ModeInPlace) + ", " + quoted(inplace.ModeInPlaceOnly)
	keys := form{onWorkload, "keys and `prefix/*`, comma-separated", "none"}
	return map[string]form{
		inplace.AnnotationMaintenanceWindow: {everywhere, "days, times and a zone, separated by `;`; or `always`", "none: at any time"},

		inplace.LabelUpdate:       {everywhere, modes + "; on a workload also " + quoted(inplace.ModeRecreate), "none: updates are native"},
		inplace.LabelStatefulSets: {everywhere, quoted(inplace.StatefulSetsInPlace), "none: StatefulSets are updated natively"},
		inplace.LabelDrain: {everywhere, fmt.Sprintf("`0` to `%.0fm`, in `ms`, `s` and `m`", inplace.LongestDrain.Minutes()),
			quoted(defaults.Drain)},
		inplace.LabelPrePullParallelism: {everywhere, "`0` to `1000`", quoted(defaults.PrePullParallelism)},
		inplace.LabelSurge:              {everywhere, "`true`, `always`, `false`", quoted(defaults.Surge)},
		inplace.LabelRestart:            {everywhere, quoted(inplace.RestartInPlace), "none: pods are replaced"},
		inplace.LabelResize:             {everywhere, quoted(inplace.ResizeAll) + ", " + quoted(inplace.ResizeNone), "none: by `resizePolicy`"},
		inplace.LabelInitContainers: {everywhere, quoted(inplace.InitContainersInPlace) + ", " + quoted(inplace.InitContainersNative),
			quoted(inplace.InitContainersInPlace)},
		inplace.LabelDisruptionBudgets: {everywhere, quoted(inplace.DisruptionBudgetsRespect) + ", " + quoted(inplace.DisruptionBudgetsIgnore),
			quoted(inplace.DisruptionBudgetsIgnore)},
		inplace.LabelPreRestartTimeout: {everywhere,
			fmt.Sprintf("`0` to `%.0fh`, in `ms`, `s`, `m` and `h`", inplace.LongestPreRestartTimeout.Hours()), "`10m`"},
		inplace.LabelUnreachableNodes: {everywhere, quoted(inplace.UnreachableNodesWait) + ", " + quoted(inplace.UnreachableNodesSkip),
			quoted(inplace.UnreachableNodesWait)},
		inplace.AnnotationPreRestartHooks:    {onWorkload, "names, comma-separated", "none: no pod waits"},
		inplace.LabelPartition:               {onWorkload, "a number, or `0percent` to `100percent`", "none: no pod stays"},
		inplace.LabelOnDelete:                {onWorkload, quoted(inplace.OnDeleteInPlace), "none: native, you delete pods"},
		inplace.AnnotationInPlaceAnnotations: keys,
		inplace.AnnotationRestartAnnotations: keys,
		inplace.AnnotationCanaryNodes:        {onWorkload, "a label selector", "none: no node goes first"},
		inplace.AnnotationUpdateByTopology:   {onWorkload, "the key of a label", "none: nodes in any order"},
		inplace.AnnotationUpdateLast:         {onWorkload, "a label selector", "none: no pod goes last"},
		inplace.AnnotationAuxiliary:          {onWorkload, "names of containers, comma-separated", "none"},
		inplace.AnnotationRestartPrefix:      {"the pod template", "any text, such as a time", "none"},
		inplace.AnnotationRestartContainers:  {"a pod", "names of containers, comma-separated", "none"},
		inplace.AnnotationRestartDeadline:    {"a pod", "a time in RFC 3339", "none: the request waits"},
	}
}

// readSettings returns the settings and the managers' flags. Each setting must have a form.
func readSettings() (settings, error) {
	var s settings
	var found []constant
	for _, part := range []struct{ file, prefix string }{
		{"settings.go", "Label"}, {"partition.go", "Label"}, {"ondelete.go", "Label"},
		{"rules.go", "Annotation"}, {"auxiliary.go", "Annotation"}, {"order.go", "Annotation"}, {"hooks.go", "Annotation"},
		{"requests.go", "Annotation"}, {"window.go", "Annotation"},
	} {
		if err := constants("inplace", in(part.file, part.prefix), &found); err != nil {
			return s, err
		}
	}
	known := forms()
	for _, c := range found {
		form, has := known[c.Value]
		switch {
		case !has:
			return s, fmt.Errorf("%s has no form: say in forms where it counts, its values and its default", c.Name)
		case c.Sort() == "label":
			s.Labels = append(s.Labels, setting{c, form})
		default:
			s.Annotations = append(s.Annotations, setting{c, form})
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
