package main

import (
	"fmt"
	"strings"
	"unicode"
)

// slug returns the anchor that GitHub gives a heading: letters, digits, hyphens and underscores in small letters, a hyphen for each space.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

// addAnchor notes the anchor of a heading. GitHub numbers headings of the same name, beginning with the second one.
func (p *page) addAnchor(name string) {
	anchor := name
	for n := 1; p.anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", name, n)
	}
	p.anchors[anchor] = true
}
