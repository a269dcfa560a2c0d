package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensions "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// page is what the checks need of one Markdown file.
type page struct {
	path      string
	source    []byte
	title     bool            // its first block is a heading of the first level
	anchors   map[string]bool // of its headings, and in its HTML
	links     []link
	sentences []sentence
	running   []sentence // those of the sentences that stand in no table
	prose     []sentence // all text without its code: headings, paragraphs, items, cells
	nameless  []int      // lines of tables with a column without a heading
}

// link is a link or an image.
type link struct {
	to   string
	line int
}

// repositoryFiles returns the paths of the files that are in Git or will be, which leaves out what .gitignore names.
func repositoryFiles() ([]string, error) {
	listed, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate").Output()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range strings.Split(strings.TrimSpace(string(listed)), "\n") {
		if _, err := os.Lstat(file); err == nil {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files, nil
}

// readPages returns the Markdown files among the files, apart from those in testdata.
func readPages(files []string) ([]*page, error) {
	var pages []*page
	for _, file := range files {
		if path.Ext(file) != ".md" || strings.Contains(file, "testdata/") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pages = append(pages, parse(file, source))
	}
	return pages, nil
}

// clean returns a path as Git prints it.
func clean(file string) string { return path.Clean(strings.ReplaceAll(file, `\`, "/")) }

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

// parse reads a page.
func parse(file string, source []byte) *page {
	p := &page{path: file, source: source, anchors: map[string]bool{}}
	root := markdown.Parser().Parse(text.NewReader(source))
	p.title = hasTitle(root)
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			return p.read(node), nil
		}
		return ast.WalkContinue, nil
	})
	return p
}

// hasTitle says whether the first block that is not a comment is a heading of the first level.
func hasTitle(root ast.Node) bool {
	for block := root.FirstChild(); block != nil; block = block.NextSibling() {
		if _, isHTML := block.(*ast.HTMLBlock); isHTML {
			continue
		}
		heading, is := block.(*ast.Heading)
		return is && heading.Level == 1
	}
	return false
}

// read takes over what one node has for the checks.
func (p *page) read(node ast.Node) ast.WalkStatus {
	switch n := node.(type) {
	case *ast.Heading:
		p.addAnchor(slug(p.text(n, whole)))
		p.prose = append(p.prose, sentence{p.text(n, without), p.line(n)})
	case *extensions.TableHeader:
		p.readHead(n)
	case *extensions.TableCell:
		if _, isHead := n.Parent().(*extensions.TableHeader); !isHead {
			p.addSentences(n, 4)
		}
	case *ast.Paragraph:
		p.running = append(p.running, p.addSentences(n, 1)...)
	case *ast.TextBlock: // the text of an item of a tight list
		p.running = append(p.running, p.addSentences(n, 4)...)
	case *ast.Link:
		p.links = append(p.links, link{string(n.Destination), p.line(n)})
	case *ast.Image:
		p.links = append(p.links, link{string(n.Destination), p.line(n)})
	case *ast.AutoLink:
		p.links = append(p.links, link{string(n.URL(p.source)), p.line(n)})
	case *ast.HTMLBlock:
		p.readHTML(n.Lines().Value(p.source), p.line(n))
	case *ast.RawHTML:
		p.readHTML(n.Segments.Value(p.source), p.line(n))
	}
	return ast.WalkContinue
}

// readHead notes the headings of a table's columns, and whether one is empty.
func (p *page) readHead(head *extensions.TableHeader) {
	nameless := false
	for cell := head.FirstChild(); cell != nil; cell = cell.NextSibling() {
		nameless = nameless || strings.TrimSpace(p.text(cell, whole)) == ""
		p.prose = append(p.prose, sentence{p.text(cell, without), p.line(head)})
	}
	if nameless {
		p.nameless = append(p.nameless, p.line(head))
	}
}

var (
	htmlLinks   = regexp.MustCompile(`\b(?:href|src|srcset)="([^"]+)"`)
	htmlAnchors = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// readHTML takes over links and anchors of HTML that stands in Markdown.
func (p *page) readHTML(html []byte, line int) {
	html = htmlComment.ReplaceAll(html, nil)
	for _, found := range htmlLinks.FindAllSubmatch(html, -1) {
		p.links = append(p.links, link{string(found[1]), line})
	}
	for _, found := range htmlAnchors.FindAllSubmatch(html, -1) {
		p.anchors[string(found[1])] = true
	}
}

// line returns the line at which a node begins, or its parent if the node does not say.
func (p *page) line(node ast.Node) int {
	for n := node; n != nil; n = n.Parent() {
		if at := n.Pos(); at >= 0 && n.Kind() != ast.KindDocument {
			return 1 + bytes.Count(p.source[:min(at, len(p.source))], []byte("\n"))
		}
	}
	return 1
}
