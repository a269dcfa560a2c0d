package main

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// clicks is how many links may lead from README.md to any page of docs.
const clicks = 2

// tree is what links can lead to.
type tree struct {
	files   map[string]bool // the folders as well
	pages   map[string]*page
	reached map[string][]string // the pages to which the links of a page lead
}

// own is the repository on GitHub: a link to it from a page is checked like a relative one.
var own = regexp.MustCompile(`^https://github\.com/stayput/stayput/(?:blob|tree)/main/`)

// lineAnchor is the anchor that GitHub gives the lines of code.
var lineAnchor = regexp.MustCompile(`^L\d+(-L\d+)?$`)

func newTree(files []string, pages []*page) *tree {
	t := &tree{files: map[string]bool{".": true}, pages: map[string]*page{}, reached: map[string][]string{}}
	for _, file := range files {
		for ; file != "."; file = path.Dir(file) {
			t.files[file] = true
		}
	}
	for _, p := range pages {
		t.pages[p.path] = p
		for _, l := range p.links {
			if to, _, inside := target(p.path, l.to); inside {
				t.reached[p.path] = append(t.reached[p.path], to)
			}
		}
	}
	return t
}

// target returns the file to which a link leads and the anchor in it, and whether it is one of the repository.
func target(from, to string) (file, anchor string, inside bool) {
	to, atGitHub := own.ReplaceAllString(to, ""), own.MatchString(to)
	parsed, err := url.Parse(to)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" {
		return "", "", false
	}
	switch {
	case atGitHub:
		file = path.Clean(parsed.Path)
	case parsed.Path == "":
		file = from
	default:
		file = path.Join(path.Dir(from), parsed.Path)
	}
	return file, parsed.Fragment, true
}

// checkLinks returns the links of a page that lead nowhere.
func (t *tree) checkLinks(p *page) []violation {
	var found []violation
	for _, l := range p.links {
		if what := t.broken(p.path, l.to); what != "" {
			found = append(found, violation{p.path, l.line, what})
		}
	}
	return found
}

// broken says what is wrong with a link, or nothing.
func (t *tree) broken(from, to string) string {
	if strings.HasPrefix(to, "/") {
		return fmt.Sprintf("link %s: write it relative to the page", to)
	}
	file, anchor, inside := target(from, to)
	if !inside {
		return ""
	}
	if !t.files[file] {
		return fmt.Sprintf("link %s: there is no file %s%s", to, file, t.namesake(file))
	}
	linked, isPage := t.pages[file]
	switch {
	case anchor == "":
		return ""
	case !isPage && lineAnchor.MatchString(anchor):
		return ""
	case !isPage:
		return fmt.Sprintf("link %s: %s is no page with headings; take #%s away", to, file, anchor)
	case !linked.anchors[anchor]:
		return fmt.Sprintf("link %s: %s has no heading #%s; it has %s", to, file, anchor, linked.closest(anchor))
	}
	return ""
}

// namesake says where a file of the same name is.
func (t *tree) namesake(file string) string {
	for _, other := range slices.Sorted(maps.Keys(t.files)) {
		if path.Base(other) == path.Base(file) {
			return "; is it " + other + "?"
		}
	}
	return ""
}

// closest returns the anchors that share a word with the one that does not exist, or all anchors.
func (p *page) closest(anchor string) string {
	all := slices.Sorted(maps.Keys(p.anchors))
	var similar []string
	for _, other := range all {
		if slices.ContainsFunc(strings.Split(anchor, "-"), func(word string) bool { return len(word) > 3 && strings.Contains(other, word) }) {
			similar = append(similar, "#"+other)
		}
	}
	if len(similar) == 0 && len(all) > 0 {
		return "#" + strings.Join(all, ", #")
	}
	return strings.Join(similar, ", ")
}

// checkReach returns the pages of docs that a reader of README.md does not find in a few clicks.
func (t *tree) checkReach() []violation {
	near, last := map[string]bool{"README.md": true}, []string{"README.md"}
	for range clicks {
		var next []string
		for _, from := range last {
			for _, to := range t.reached[from] {
				if !near[to] {
					near[to] = true
					next = append(next, to)
				}
			}
		}
		last = next
	}
	var found []violation
	for _, file := range slices.Sorted(maps.Keys(t.pages)) {
		if strings.HasPrefix(file, "docs/") && !near[file] {
			found = append(found, violation{file, 1, fmt.Sprintf("it is more than %d clicks from README.md: list it in docs/README.md", clicks)})
		}
	}
	return found
}
