// Command check reads the Markdown of the repository and says what is wrong with it: links that lead nowhere, and English that is not
// plain. It runs in the repository's root.
//
//	go run ./docs/check                      all pages; a violation makes it fail
//	go run ./docs/check docs/how-to/pace.md  only these pages
//	go run ./docs/check -site .cluster/site  the links and anchors of a built site
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

// violation is one thing that is wrong, where it stands, and what would be right.
type violation struct {
	path string
	line int
	what string
}

func main() {
	site := flag.String("site", "", "check the HTML in this `folder` instead of the Markdown")
	flag.Parse()
	found, err := check(os.Stdout, *site, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs/check:", err)
		os.Exit(2)
	}
	if report(os.Stdout, found); len(found) > 0 {
		fmt.Printf("%d violations\n", len(found))
		os.Exit(1)
	}
}

// check returns the violations of the built site, or else of the named pages, or else of all pages, and prints the counts of pages.
func check(out io.Writer, site string, named []string) ([]violation, error) {
	if site != "" {
		return checkSite(os.DirFS(site))
	}
	files, err := repositoryFiles()
	if err != nil {
		return nil, err
	}
	all, err := readPages(files)
	if err != nil {
		return nil, err
	}
	pages, err := selected(all, named)
	if err != nil {
		return nil, err
	}
	tree := newTree(files, all)
	var found []violation
	for _, p := range pages {
		found = append(found, tree.checkLinks(p)...)
		found = append(found, checkForm(p)...)
	}
	found = append(found, checkProse(out, pages)...)
	if len(named) > 0 {
		return found, nil
	}
	mentions, err := tree.checkMentions(files)
	return slices.Concat(found, mentions, tree.checkReach()), err
}

// selected returns the pages with the names, or all pages if there are none.
func selected(all []*page, names []string) ([]*page, error) {
	if len(names) == 0 {
		return all, nil
	}
	var some []*page
	for _, name := range names {
		at := slices.IndexFunc(all, func(p *page) bool { return p.path == clean(name) })
		if at < 0 {
			return nil, fmt.Errorf("%s is no Markdown file of the repository", name)
		}
		some = append(some, all[at])
	}
	return some, nil
}

// report prints violations in the order of files and lines.
func report(out io.Writer, found []violation) {
	slices.SortStableFunc(found, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line))
	})
	for _, v := range found {
		fmt.Fprintf(out, "%s:%d: %s\n", v.path, v.line, v.what)
	}
}
