package main

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// sentence is a sentence, or another text, and the line at which it begins.
type sentence struct {
	text string
	line int
}

// How code stands in a text.
var (
	whole   = func(code string) string { return code }
	without = func(string) string { return "" }
	// endless takes away what would end a sentence.
	endless = strings.NewReplacer(".", "", "!", "", "?", "").Replace
)

// addSentences notes the sentences of a node and returns them. A text with fewer words than least is a name, such as "in place" or "none".
// If such cells counted, long sentences beside them would look short on average.
func (p *page) addSentences(node ast.Node, least int) []sentence {
	p.prose = append(p.prose, sentence{p.text(node, without), p.line(node)})
	words := p.text(node, endless)
	if len(wordsOf(words)) < least {
		return nil
	}
	added := split(words, p.line(node))
	p.sentences = append(p.sentences, added...)
	return added
}

// text returns the words of a node, without its marks, and with its code as the function makes it.
func (p *page) text(node ast.Node, code func(string) string) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch c := child.(type) {
		case *ast.Text:
			b.Write(c.Value(p.source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.AutoLink:
			b.WriteString("URL")
		case *ast.CodeSpan:
			b.WriteString(code(p.text(c, whole)))
		case *ast.RawHTML, *ast.Image:
		default:
			b.WriteString(p.text(c, code))
		}
	}
	return b.String()
}

// wordsOf returns the words of a text: what stands between spaces and has a letter or a digit.
func wordsOf(text string) []string {
	var words []string
	for _, word := range strings.Fields(text) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words = append(words, word)
		}
	}
	return words
}

// abbreviations end with a full stop, and no sentence.
var abbreviations = regexp.MustCompile(`(?i)^\(?(e\.g|i\.e|etc|vs|cf|approx|no)\.$`)

// split returns the sentences of a text that begins at the line.
func split(text string, line int) []sentence {
	var sentences []sentence
	var current []string
	begins := line
	end := func() {
		if words := strings.Join(current, " "); len(wordsOf(words)) > 0 {
			sentences = append(sentences, sentence{words, begins})
		}
		current = nil
	}
	for i, words := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(words) {
			if len(current) == 0 {
				begins = line + i
			}
			current = append(current, word)
			if ends(word) {
				end()
			}
		}
	}
	end()
	return sentences
}

// ends says whether a word is the last of its sentence.
func ends(word string) bool {
	bare := strings.TrimRight(word, `)"'”’*_`)
	if bare == "" || strings.HasSuffix(bare, "...") || abbreviations.MatchString(bare) {
		return false
	}
	return strings.ContainsRune(".!?", rune(bare[len(bare)-1]))
}
