package main

import (
	"strings"

	"k8s.io/client-go/rest"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/steps"
)

// warnings keeps what Stayput answers to a dry run, and passes on what others say.
type warnings struct {
	others  rest.WarningHandler
	answers []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, agent string, text string) {
	switch answer, ours := strings.CutPrefix(text, steps.WarningPrefix); {
	case ours && (isInPlace(answer) || isRecreate(answer)):
		w.answers = append(w.answers, answer)
	case ours && steps.IsAside(answer):
		// the forecast says the same
	default:
		w.others.HandleWarningHeader(code, agent, text)
	}
}

func isInPlace(answer string) bool  { return strings.HasPrefix(answer, edit.InPlacePrefix) }
func isRecreate(answer string) bool { return strings.HasPrefix(answer, edit.RecreatePrefix) }

// answer is Stayput's, empty if it has not answered. Of several the last one has seen what other webhooks have made of the template.
func (w *warnings) answer() string {
	if len(w.answers) == 0 {
		return ""
	}
	return w.answers[len(w.answers)-1]
}

// wait lets Stayput have the last word: it knows its flags, and which updates it has given back.
func wait(preview steps.Preview, answer string) steps.Preview {
	switch {
	case isInPlace(answer):
		preview.Reasons = nil
	case isRecreate(answer) && preview.InPlace():
		preview.Reasons = inplace.Reasons{{Message: strings.TrimPrefix(answer, edit.RecreatePrefix)}}
	}
	return preview
}
