package main

import (
	"errors"
	"fmt"
	"go/ast"
	"strings"
)

// event is the reason of an event, with its type and what users do about it.
type event struct {
	constant
	Type, Advice string
}

// eventsPage is the data of the page.
type eventsPage struct {
	Events            []event
	Reasons, Failures []advised
	Conditions        []condition
}

// readEvents returns what Stayput tells of updates, apart from metrics.
func readEvents() (eventsPage, error) {
	page := eventsPage{Conditions: writtenConditions()}
	err := events("controller/report", &page.Events)
	for i, each := range page.Events {
		advice, has := adviceOnEvents[each.Value]
		if !has {
			return page, fmt.Errorf("there is no advice about event %s", each.Value)
		}
		page.Events[i].Advice = advice
	}
	for _, part := range []struct {
		into         *[]advised
		folder, file string
		prefix       string
	}{
		{&page.Reasons, "inplace", "", "Code"},
		{&page.Failures, "controller/report", "report.go", "failed"},
	} {
		var found []constant
		err = errors.Join(err, constants(part.folder, in(part.file, part.prefix), &found))
		all, unadvised := withAdvice(found, adviceOnReasons)
		*part.into, err = all, errors.Join(err, unadvised)
	}
	return page, err
}

// events appends the constants named Event... to into, with their types. The types come from calls event(object, corev1.EventType...,
// Event..., note).
func events(folder string, into *[]event) error {
	var reasons []constant
	if err := constants(folder, in("", "Event"), &reasons); err != nil {
		return err
	}
	files, err := parse(folder)
	if err != nil {
		return err
	}
	types := recordedTypes(files)
	for _, reason := range reasons {
		kind, used := types[reason.Name]
		if !used {
			return fmt.Errorf("%s: no call event(object, type, %s, note), so its type is not known", folder, reason.Name)
		}
		*into = append(*into, event{constant: reason, Type: kind})
	}
	return nil
}

// recordedTypes returns the types with which events are recorded, by the names of the events' constants.
func recordedTypes(files []*ast.File) map[string]string {
	types := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 4 {
				return true
			}
			function, isMethod := call.Fun.(*ast.SelectorExpr)
			kind, isConstant := call.Args[1].(*ast.SelectorExpr)
			reason, isName := call.Args[2].(*ast.Ident)
			if isMethod && isConstant && isName && function.Sel.Name == "event" {
				types[reason.Name] = strings.TrimPrefix(kind.Sel.Name, "EventType")
			}
			return true
		})
	}
	return types
}
