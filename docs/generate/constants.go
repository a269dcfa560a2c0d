package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// constant is a string constant with the first paragraph of its comment.
type constant struct {
	Name, Value, Doc string
	file, kind       string
}

// Sort returns what the constant names on an object: a label or an annotation.
func (c constant) Sort() string {
	if strings.HasPrefix(c.Name, "Label") {
		return "label"
	}
	return "annotation"
}

// in returns a function that chooses constants by the prefixes of their names, in one file, or in all files if file is empty.
func in(file string, prefixes ...string) func(constant) bool {
	return func(c constant) bool {
		for _, prefix := range prefixes {
			if (file == "" || c.file == file) && strings.HasPrefix(c.Name, prefix) {
				return true
			}
		}
		return false
	}
}

// constants appends the chosen constants of the folder's package to into. Each must have a comment.
func constants(folder string, which func(constant) bool, into *[]constant) error {
	files, err := parse(folder)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(declared(files), func(c constant) bool { return !which(c) })
	if len(chosen) == 0 {
		return fmt.Errorf("%s: none of the constants that were looked for", folder)
	}
	values := map[string]string{}
	for _, c := range chosen {
		values[c.Name] = c.Value
	}
	for _, c := range chosen {
		if c.Doc == "" {
			return fmt.Errorf("%s/%s: %s has no comment, and so no description in the reference", folder, c.file, c.Name)
		}
		c.Doc = described(c, values)
		*into = append(*into, c)
	}
	return nil
}

// parse reads the Go files of a folder, except tests, in the order of their names.
func parse(folder string) ([]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		file.Name.Name = filepath.Base(path) // replaces the package's name, which is not needed
		files = append(files, file)
	}
	return files, nil
}

// declared returns the string constants in the order of the source. A constant that is declared as another constant has the other's value.
func declared(files []*ast.File) []constant {
	var all []constant
	values := map[string]string{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				if c, ok := text(spec.(*ast.ValueSpec), values); ok {
					c.file, values[c.Name] = file.Name.Name, c.Value
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func text(spec *ast.ValueSpec, values map[string]string) (constant, bool) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return constant{}, false
	}
	c := constant{Name: spec.Names[0].Name, Doc: cmp.Or(spec.Doc.Text(), spec.Comment.Text())}
	if kind, ok := spec.Type.(*ast.Ident); ok {
		c.kind = kind.Name
	}
	var known bool
	switch value := spec.Values[0].(type) {
	case *ast.BasicLit:
		unquoted, err := strconv.Unquote(value.Value)
		c.Value, known = unquoted, err == nil && value.Kind == token.STRING
	case *ast.Ident:
		c.Value, known = values[value.Name]
	}
	return c, known
}

var word = regexp.MustCompile(`\b[A-Za-z]+\b`)

// described returns the first paragraph of the comment as one line of a table, without the constant's own name, and with the values of
// other constants instead of their names.
func described(c constant, values map[string]string) string {
	paragraph, _, _ := strings.Cut(c.Doc, "\n\n")
	line := strings.Join(strings.Fields(paragraph), " ")
	line = strings.TrimPrefix(strings.TrimPrefix(line, c.Name+" "), "is ")
	line = word.ReplaceAllStringFunc(line, func(name string) string {
		if value, isConstant := values[name]; isConstant {
			return "`" + value + "`"
		}
		return name
	})
	line = strings.ReplaceAll(strings.TrimSuffix(line, "."), "|", `\|`)
	return strings.ToUpper(line[:1]) + line[1:]
}
