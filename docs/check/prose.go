package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// The limits of plain English.
const (
	meanLimit   = 18.0 // words in a sentence, on each page
	shortLimit  = 12.0 // words that a sentence outside of tables has at least, on average: fewer are telegrams
	shortSample = 10   // so many sentences a page needs before its average says anything
	longWords   = 30   // a sentence with more words is a long one
	longLimit   = 4.0  // percent of the sentences that may be long
	readmeLimit = 900  // words of README.md, those of its code included
)

// forbidden are words that plain English does without, and what to write instead.
var forbidden = map[string]string{
	"nobody":   "name what does not, or say that nothing does",
	"somebody": "address the reader: \"you\"",
	"anybody":  "name the people: \"users who may ...\"",
	"whoever":  "name the people: \"users who ...\"",
	"whomever": "name the people",
	"he":       "repeat the noun, or write \"it\" or \"they\"",
	"she":      "repeat the noun, or write \"it\" or \"they\"",
	"missed":   "\"unavailable\" or \"not met\"",
}

var forbiddenWords = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|whoever|whomever|he|she|missed)\b`)

// uncounted are pages whose English is not counted: lists of links, pages taken from elsewhere, and those for developers, in the language
// of code. Generated pages count, and are mended in their generators and in the comments of code.
var uncounted = []string{"docs/README.md", "docs/architecture.md", ".github/CODE_OF_CONDUCT.md"}

// counts are those of a page or of several.
type counts struct{ words, sentences, long int }

func (c counts) mean() float64      { return float64(c.words) / float64(max(c.sentences, 1)) }
func (c counts) longShare() float64 { return 100 * float64(c.long) / float64(max(c.sentences, 1)) }

func (c counts) String() string {
	return fmt.Sprintf("%6d %9d %5.1f %7d %5.1f %%", c.words, c.sentences, c.mean(), c.long, c.longShare())
}

func (c *counts) add(other counts) {
	c.words, c.sentences, c.long = c.words+other.words, c.sentences+other.sentences, c.long+other.long
}

// checkForm returns what is wrong with a page's form, whatever its language.
func checkForm(p *page) []violation {
	var found []violation
	if !p.title && strings.HasPrefix(p.path, "docs/") {
		found = append(found, violation{p.path, 1, "begin the page with its title: # Title"})
	}
	for _, line := range p.nameless {
		found = append(found, violation{p.path, line, "give each column of the table a heading"})
	}
	if words := len(wordsOf(string(p.source))); p.path == "README.md" && words > readmeLimit {
		found = append(found, violation{p.path, 1, fmt.Sprintf("it has %d words, %d are allowed: move something into docs", words, readmeLimit)})
	}
	return found
}

// checkProse prints the counts of the pages, and returns what is not plain English. Long sentences are only shown while few are long.
func checkProse(out io.Writer, pages []*page) []violation {
	var total counts
	var found, long []violation
	fmt.Fprintf(out, "%-50s %6s %9s %5s %7s %s\n", "page", "words", "sentences", "mean", "over 30", "  share")
	for _, p := range pages {
		c, tooLong := countsOf(p.path, p.sentences)
		if slices.Contains(uncounted, p.path) {
			fmt.Fprintf(out, "%-50s %v  (not counted)\n", p.path, c)
			continue
		}
		fmt.Fprintf(out, "%-50s %v\n", p.path, c)
		total.add(c)
		long = append(long, tooLong...)
		found = append(found, p.unplain()...)
		found = append(found, p.checkMean(c)...)
	}
	fmt.Fprintf(out, "%-50s %v\n\n", "all that are counted", total)
	if total.longShare() > longLimit {
		return append(found, long...)
	}
	if len(long) > 0 {
		fmt.Fprintf(out, "No violations while at most %.0f %% of the sentences are so long:\n", longLimit)
		report(out, long)
		fmt.Fprintln(out)
	}
	return found
}

// checkMean says whether the sentences of a page, of which c are the counts, are too long or too short on average.
func (p *page) checkMean(c counts) []violation {
	running, _ := countsOf(p.path, p.running)
	switch {
	case c.mean() > meanLimit:
		what := fmt.Sprintf("a sentence has %.1f words on average, %.0f are allowed: split long ones", c.mean(), meanLimit)
		return []violation{{p.path, 1, what}}
	case running.sentences >= shortSample && running.mean() < shortLimit:
		what := fmt.Sprintf("a sentence has %.1f words on average, %.0f are wanted: join those that belong together", running.mean(), shortLimit)
		return []violation{{p.path, 1, what}}
	}
	return nil
}

// countsOf returns the counts of sentences of a page and the long ones.
func countsOf(path string, sentences []sentence) (c counts, long []violation) {
	for _, s := range sentences {
		words := wordsOf(s.text)
		c.words += len(words)
		c.sentences++
		if len(words) > longWords {
			c.long++
			long = append(long, violation{path, s.line, fmt.Sprintf("%d words in a sentence, split it at %d: %s ...",
				len(words), longWords, strings.Join(words[:8], " "))})
		}
	}
	return c, long
}

// unplain returns the forbidden words of a page, in headings as well. In code they are allowed.
func (p *page) unplain() []violation {
	var found []violation
	for _, s := range p.prose {
		for _, at := range forbiddenWords.FindAllStringIndex(s.text, -1) {
			word, line := s.text[at[0]:at[1]], s.line+strings.Count(s.text[:at[0]], "\n")
			found = append(found, violation{p.path, line, fmt.Sprintf("%q: %s", word, forbidden[strings.ToLower(word)])})
		}
	}
	return found
}
