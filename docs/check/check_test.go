package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// lines returns what report prints of violations.
func lines(found []violation) []string {
	var b strings.Builder
	report(&b, found)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"Fall back":                         "fall-back",
		"What fails, and what happens then": "what-fails-and-what-happens-then",
		"stayput.dev/partition":             "stayputdevpartition",
		"Kubernetes 1.34 – 1.36":            "kubernetes-134--136",
		"the_name & more":                   "the_name--more",
		"Größe":                             "größe",
	} {
		if got := slug(heading); got != want {
			t.Errorf("slug(%q) = %q, want %q", heading, got, want)
		}
	}
}

func TestAnchorsOfSameHeadings(t *testing.T) {
	p := parse("a.md", []byte("# Page\n\n## Try `it`\n\n## Try it\n\n### Try *it*\n\n<a id=\"own\"></a>\n"))
	for _, anchor := range []string{"page", "try-it", "try-it-1", "try-it-2", "own"} {
		if !p.anchors[anchor] {
			t.Errorf("no anchor %s in %v", anchor, p.anchors)
		}
	}
}

func TestLinks(t *testing.T) {
	files := []string{"README.md", "docs/a.md", "docs/how-to/b.md", "docs/picture.svg", "e2e/kind.sh"}
	for _, row := range []struct{ to, want string }{
		{"b.md", ""},
		{"b.md#step-2", ""},
		{"#step-2", ""},
		{"../a.md", ""},
		{"../picture.svg", ""},
		{"../../e2e/kind.sh#L10-L12", ""},
		{"../../e2e", ""},
		{"https://example.com/none.md#x", ""},
		{"mailto:a@example.com", ""},
		{"https://github.com/stayput/stayput/blob/main/docs/a.md", ""},
		{"https://github.com/stayput/stayput/blob/main/docs/c.md",
			"link https://github.com/stayput/stayput/blob/main/docs/c.md: there is no file docs/c.md"},
		{"a.md", "link a.md: there is no file docs/how-to/a.md; is it docs/a.md?"},
		{"#step-3", "link #step-3: docs/how-to/b.md has no heading #step-3; it has #step-2"},
		{"b.md#steps", "link b.md#steps: docs/how-to/b.md has no heading #steps; it has #step-2, #title"},
		{"../picture.svg#x", "link ../picture.svg#x: docs/picture.svg is no page with headings; take #x away"},
		{"/docs/a.md", "link /docs/a.md: write it relative to the page"},
	} {
		b := parse("docs/how-to/b.md", []byte("# Title\n\n## Step 2\n"))
		if got := newTree(files, []*page{b}).broken(b.path, row.to); got != row.want {
			t.Errorf("%s: %q, want %q", row.to, got, row.want)
		}
	}
}

func TestMentions(t *testing.T) {
	a := parse("docs/a.md", []byte("# Title\n\n## Step\n"))
	expect(t, lines(newTree([]string{"docs/a.md"}, []*page{a}).mentionsIn("main.go", []byte(strings.Join([]string{
		"// See docs/a.md, docs/a.md#step, or https://github.com/stayput/stayput/blob/main/docs/a.md#step.",
		"// See docs/b.md.",
		"// See https://github.com/stayput/stayput/blob/main/docs/a.md#stop.",
		"// README.md and my-docs are no links, but README.md#why is one.",
	}, "\n")))),
		"main.go:2: link docs/b.md: there is no file docs/b.md",
		"main.go:3: link https://github.com/stayput/stayput/blob/main/docs/a.md#stop: docs/a.md has no heading #stop; it has #step, #title",
		"main.go:4: link README.md#why: there is no file README.md")
}

func TestEveryKindOfLinkIsRead(t *testing.T) {
	p := parse("a.md", []byte(strings.Join([]string{
		"# Title [one](1.md)",
		"",
		"Text [two](2.md) and",
		"![three](3.svg) and [four].",
		"",
		"| head |",
		"|---|",
		"| [five](5.md) |",
		"",
		`<a href="6.md"><img src="7.svg"></a>`,
		"",
		"<!-- [none](8.md) -->",
		"",
		"```",
		"[none](9.md)",
		"```",
		"",
		"[four]: 4.md",
	}, "\n")))
	want := []link{{"1.md", 1}, {"2.md", 3}, {"3.svg", 4}, {"4.md", 4}, {"5.md", 8}, {"6.md", 10}, {"7.svg", 10}}
	if !slices.Equal(p.links, want) {
		t.Errorf("links %v, want %v", p.links, want)
	}
}

func TestReach(t *testing.T) {
	pages := []*page{
		parse("README.md", []byte("[index](docs/README.md)")),
		parse("docs/README.md", []byte("[near](near.md)")),
		parse("docs/near.md", []byte("[far](far.md)")),
		parse("docs/far.md", nil),
	}
	expect(t, lines(newTree(nil, pages).checkReach()),
		"docs/far.md:1: it is more than 2 clicks from README.md: list it in docs/README.md")
}

func TestSentences(t *testing.T) {
	p := parse("a.md", []byte(strings.Join([]string{
		"# No sentence.",
		"",
		"The first one. It ends `kubectl get pods. Now` (really.) And",
		"two lines, e.g. these, of **v1.36.3** ... have one.",
		"- an item of four words",
		"- two words",
		"",
		"```",
		"Code has none.",
		"```",
		"",
		"| head | other head |",
		"|---|---|",
		"| it has many words. It has more | none |",
	}, "\n")))
	var got []string
	for _, s := range p.sentences {
		got = append(got, strings.Repeat(" ", s.line)+s.text)
	}
	expect(t, got,
		"   The first one.",
		"   It ends kubectl get pods Now (really.)",
		"   And two lines, e.g. these, of v1.36.3 ... have one.",
		"     an item of four words",
		"              it has many words.",
		"              It has more")
}

func TestForm(t *testing.T) {
	expect(t, lines(checkForm(parse("docs/a.md", []byte("<!-- generated -->\n\n# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")))), "")
	expect(t, lines(checkForm(parse("docs/a.md", []byte("Text.\n\n| a | |\n|---|---|\n| 1 | 2 |\n")))),
		"docs/a.md:1: begin the page with its title: # Title",
		"docs/a.md:3: give each column of the table a heading")
	expect(t, lines(checkForm(parse("README.md", []byte("# Title\n\n"+strings.Repeat("word ", 900))))),
		"README.md:1: it has 901 words, 900 are allowed: move something into docs")
}

func TestForbiddenWords(t *testing.T) {
	p := parse("a.md", []byte("# Nobody\n\nWrite `missed` in\ncode. The header is there. Goals are missed.\n\n| he |\n|---|\n| she |\n"))
	expect(t, lines(checkProse(io.Discard, []*page{p})),
		`a.md:1: "Nobody": name what does not, or say that nothing does`,
		`a.md:4: "missed": "unavailable" or "not met"`,
		`a.md:6: "he": repeat the noun, or write "it" or "they"`,
		`a.md:8: "she": repeat the noun, or write "it" or "they"`)
}

// twenty and forty are sentences of so many words.
var (
	twenty = strings.Repeat("word ", 19) + "end. "
	forty  = strings.Repeat("word ", 39) + "end. "
)

func TestMean(t *testing.T) {
	p := parse("docs/a.md", []byte(twenty))
	expect(t, lines(checkProse(io.Discard, []*page{p})), "docs/a.md:1: a sentence has 20.0 words on average, 18 are allowed: split long ones")
	expect(t, lines(checkProse(io.Discard, []*page{parse("docs/architecture.md", []byte(twenty))})), "")
}

func TestTelegrams(t *testing.T) {
	short := strings.Repeat("Five words are too few. ", shortSample)
	expect(t, lines(checkProse(io.Discard, []*page{parse("a.md", []byte(short))})),
		"a.md:1: a sentence has 5.0 words on average, 12 are wanted: join those that belong together")
	expect(t, lines(checkProse(io.Discard, []*page{parse("a.md", []byte(short+strings.Repeat(twenty, shortSample)))})), "")
	expect(t, lines(checkProse(io.Discard, []*page{parse("a.md", []byte("| a |\n|---|\n| "+short+" |\n"))})), "")
}

func TestLongSentences(t *testing.T) {
	few := []*page{parse("a.md", []byte(forty+"\n\n| a |\n|---|\n| "+strings.Repeat("Short one. ", 24)+"|\n"))}
	expect(t, lines(checkProse(io.Discard, few)), "")
	many := []*page{parse("a.md", []byte(forty+"\n\n| a |\n|---|\n| "+strings.Repeat("Short one. ", 23)+"|\n"))}
	expect(t, lines(checkProse(io.Discard, many)), "a.md:1: 40 words in a sentence, split it at 30: word word word word word word word word ...")
}

func TestSite(t *testing.T) {
	site := fstest.MapFS{
		"index.html": {Data: []byte(`<a href="how-to/a.html#step">fine</a> <a href="#none">broken</a> <a href="b.html">broken</a>
			<a href="https://example.com">not ours</a> <link href="/style.css"> <img src="picture.svg">`)},
		"how-to/a.html": {Data: []byte(`<h2 id="step"></h2><a href="../index.html">fine</a>`)},
		"picture.svg":   {},
	}
	found, err := checkSite(site)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, lines(found),
		"index.html:1: link #none: index.html has no anchor #none",
		"index.html:1: link b.html: the site has no file b.html",
		"index.html:1: link /style.css: the site is published in a folder, so links have to be relative")
	if _, err := checkSite(fstest.MapFS{}); err == nil {
		t.Error("a site without pages passes")
	}
}
