package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// document is one HTML page of the built site.
type document struct {
	ids   map[string]bool
	links []string
}

// checkSite returns the links of the built site that lead nowhere. All links within the site are relative, so it works in any folder.
func checkSite(site fs.FS) ([]violation, error) {
	files, documents := map[string]bool{}, map[string]*document{}
	err := fs.WalkDir(site, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[file] = true
		if path.Ext(file) == ".html" {
			documents[file], err = readDocument(site, file)
		}
		return err
	})
	if err == nil && len(documents) == 0 {
		err = fmt.Errorf("the site has no pages")
	}
	var found []violation
	for _, file := range slices.Sorted(maps.Keys(documents)) {
		for _, to := range documents[file].links {
			if what := brokenInSite(files, documents, file, to); what != "" {
				found = append(found, violation{file, 1, what})
			}
		}
	}
	return found, err
}

// brokenInSite says what is wrong with a link of the site, or nothing.
func brokenInSite(files map[string]bool, documents map[string]*document, from, to string) string {
	parsed, err := url.Parse(to)
	if err != nil {
		return fmt.Sprintf("link %s: %v", to, err)
	}
	if parsed.Scheme != "" || parsed.Host != "" {
		return ""
	}
	if strings.HasPrefix(parsed.Path, "/") {
		return fmt.Sprintf("link %s: the site is published in a folder, so links have to be relative", to)
	}
	file := from
	if parsed.Path != "" {
		file = path.Join(path.Dir(from), parsed.Path)
	}
	switch {
	case !files[file]:
		return fmt.Sprintf("link %s: the site has no file %s", to, file)
	case parsed.Fragment == "" || documents[file] == nil || documents[file].ids[parsed.Fragment]:
		return ""
	}
	return fmt.Sprintf("link %s: %s has no anchor #%s", to, file, parsed.Fragment)
}

// readDocument reads the links and anchors of one HTML page.
func readDocument(site fs.FS, file string) (*document, error) {
	opened, err := site.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // it was only read
	root, err := html.Parse(opened)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d := &document{ids: map[string]bool{}}
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "id":
				d.ids[attribute.Val] = true
			case "href", "src":
				d.links = append(d.links, attribute.Val)
			}
		}
	}
	return d, nil
}
