package main

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"strings"
)

// mention is how comments, messages and manifests name a page, with an anchor or without.
var mention = regexp.MustCompile(`(?:https://github\.com/stayput/stayput/(?:blob|tree)/main/)?\b(?:docs/[\w./-]+\.md|[A-Z_]+\.md#[\w-]+)(?:#[\w-]+)?`)

// checkMentions returns the pages and anchors that other files than pages name and that do not exist: runbooks of alerts, for example.
func (t *tree) checkMentions(files []string) ([]violation, error) {
	var found []violation
	for _, file := range files {
		if path.Ext(file) == ".md" || path.Ext(file) == ".sum" || strings.HasPrefix(file, "docs/check/") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found = append(found, t.mentionsIn(file, content)...)
	}
	return found, nil
}

// mentionsIn returns the violations of one file.
func (t *tree) mentionsIn(file string, content []byte) []violation {
	var found []violation
	for _, at := range mention.FindAllIndex(content, -1) {
		if what := t.broken("README.md", string(content[at[0]:at[1]])); what != "" {
			found = append(found, violation{file, 1 + bytes.Count(content[:at[0]], []byte("\n")), what})
		}
	}
	return found
}
