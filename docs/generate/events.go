package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// event is the reason of an event, with its type.
type event struct {
	constant
	Type string
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
		*into = append(*into, event{reason, kind})
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
