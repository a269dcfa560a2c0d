package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
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

// events appends the constants named Event... to into, with their types: see recordedTypes.
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
			return fmt.Errorf("%s: no event %s is recorded", folder, reason.Name)
		}
		*into = append(*into, event{constant: reason, Type: kind})
	}
	return nil
}

// recordedTypes returns the types with which events are recorded, by the names of the events' constants. A warning is in a set of warnings,
// or in a call with corev1.EventTypeWarning.
func recordedTypes(files []*ast.File) map[string]string {
	types := map[string]string{}
	visit := func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GenDecl:
			return node.Tok != token.CONST
		case *ast.CallExpr:
			if warns(node) {
				for _, argument := range node.Args {
					types[nameOf(argument)] = "Warning"
				}
			}
		case *ast.Ident:
			types[node.Name] = cmp.Or(types[node.Name], "Normal")
		}
		return true
	}
	for _, file := range files {
		ast.Inspect(file, visit)
	}
	return types
}

// warns reports whether the events among the arguments are warnings.
func warns(call *ast.CallExpr) bool {
	isSet := nameOf(call.Fun) == "New"
	return isSet || slices.ContainsFunc(call.Args, func(argument ast.Expr) bool { return nameOf(argument) == "EventTypeWarning" })
}

// nameOf returns the last name of an expression like corev1.EventTypeWarning; empty if it is no name.
func nameOf(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name
	case *ast.SelectorExpr:
		return expression.Sel.Name
	}
	return ""
}
