package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// change is one changed condition.
type change struct {
	id                 int
	folder, file, does string // does is as in "< becomes <="
	line               int
	text               string // of the line
}

var (
	opposite = map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.LEQ: token.GTR,
		token.GTR: token.LEQ, token.GEQ: token.LSS}
	neighbour = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	junctions = map[token.Token]string{token.LAND: "And", token.LOR: "Or"}
)

// condition is a comparison, or two conditions joined by && or ||, with its offsets in the source.
type condition struct {
	start, end, xEnd, yStart int
	of                       token.Token
	id                       int // of its first change
}

// rewriter rewrites one file, so that each change of a condition can be switched on when the program runs.
type rewriter struct {
	source     string
	conditions []*condition // in the order in which they begin, the outer ones first
}

// rewritten returns the source of the file with its changes, which are numbered from next on. Generated code has none.
func rewritten(folder, file, source string, next int) (string, []change, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments)
	if err != nil {
		return "", nil, err
	}
	if ast.IsGenerated(parsed) {
		return source, nil, nil
	}
	r, lines := rewriter{source: source}, strings.Split(source, "\n")
	var changes []change
	ast.Inspect(parsed, func(node ast.Node) bool {
		if declared, is := node.(*ast.GenDecl); is && declared.Tok == token.CONST {
			return false
		}
		binary, is := node.(*ast.BinaryExpr)
		if !is || opposite[binary.Op] == 0 && junctions[binary.Op] == "" {
			return true
		}
		at := func(pos token.Pos) int { return files.Position(pos).Offset }
		r.conditions = append(r.conditions, &condition{start: at(binary.Pos()), end: at(binary.End()), xEnd: at(binary.X.End()),
			yStart: at(binary.Y.Pos()), of: binary.Op, id: next})
		for _, becomes := range becoming(binary.Op) {
			line := files.Position(binary.OpPos).Line
			changes = append(changes, change{id: next, folder: folder, file: file, line: line, text: strings.TrimSpace(lines[line-1]),
				does: fmt.Sprintf("%s becomes %s", binary.Op, becomes)})
			next++
		}
		return true
	})
	if len(changes) == 0 {
		return source, nil, nil
	}
	name := files.Position(parsed.Name.End()).Offset
	return source[:name] + "\n\nimport \"" + imported + "\"\n" + r.text(name, len(source)), changes, nil
}

func becoming(of token.Token) []token.Token {
	switch other, has := neighbour[of]; {
	case has:
		return []token.Token{opposite[of], other}
	case of == token.LAND:
		return []token.Token{token.LOR}
	case of == token.LOR:
		return []token.Token{token.LAND}
	}
	return []token.Token{opposite[of]}
}

// text returns that part of the source with all conditions in it rewritten.
func (r rewriter) text(start, end int) string {
	var out strings.Builder
	for _, c := range r.conditions {
		if c.start >= start && c.end <= end {
			out.WriteString(r.source[start:c.start] + r.condition(c))
			start = c.end
		}
	}
	return out.String() + r.source[start:end]
}

func (r rewriter) condition(c *condition) string {
	x, y := r.text(c.start, c.xEnd), r.text(c.yStart, c.end)
	if join := junctions[c.of]; join != "" {
		return fmt.Sprintf("mutant.%s(%d, %s, func() bool { return %s })", join, c.id, x, y)
	}
	var out strings.Builder
	out.WriteString("func() bool { ")
	for i, becomes := range becoming(c.of) {
		fmt.Fprintf(&out, "if mutant.On(%d) { return %s %s %s }; ", c.id+i, x, becomes, y)
	}
	fmt.Fprintf(&out, "return %s %s %s }()", x, c.of, y)
	return out.String()
}
