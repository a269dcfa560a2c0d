package commands

import (
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// warnings keeps Stayput's answers to a dry run, and passes on all other warnings.
type warnings struct {
	others  rest.WarningHandler
	answers []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, agent string, text string) {
	switch answer, ours := strings.CutPrefix(text, steps.WarningPrefix); {
	case ours && (isInPlace(answer) || isRecreate(answer)):
		w.answers = append(w.answers, answer)
	case ours: // the preview says the same
	default:
		w.others.HandleWarningHeader(code, agent, text)
	}
}

func isInPlace(answer string) bool  { return strings.HasPrefix(answer, edit.InPlacePrefix) }
func isRecreate(answer string) bool { return strings.HasPrefix(answer, edit.RecreatePrefix) }

// answer returns Stayput's answer, empty if it has not answered. If there are several, it returns the last one: by then, other webhooks
// have changed the template.
func (w *warnings) answer() string {
	if len(w.answers) == 0 {
		return ""
	}
	return w.answers[len(w.answers)-1]
}

// wait returns the preview as Stayput's answer corrects it: Stayput knows its flags, and which updates have fallen back.
func wait(preview steps.Preview, answer string) steps.Preview {
	switch {
	case isInPlace(answer):
		preview.Reasons = nil
	case isRecreate(answer) && preview.InPlace():
		preview.Reasons = inplace.Reasons{{Message: strings.TrimPrefix(answer, edit.RecreatePrefix)}}
	}
	return preview
}
