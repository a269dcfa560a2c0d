package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// compatible are the licences that only require that their text is passed on with a binary.
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// text is a legal file with its content.
type text struct {
	file
	content  string
	licenses []string // their SPDX identifiers; none for a NOTICE
}

// readAll reads the files. It fails if a licence is not compatible with Stayput's.
func readAll(files []file) ([]text, error) {
	var texts []text
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		t := text{file: f, content: strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))}
		if !isNotice(f.name) {
			if t.licenses, err = judge(content); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f.of, f.name, err)
			}
		}
		texts = append(texts, t)
	}
	return texts, nil
}

// judge returns the licences of a text, sorted. It fails if one of them is not compatible.
func judge(content []byte) ([]string, error) {
	var names []string
	for _, match := range licensecheck.Scan(content).Match {
		if match.IsURL {
			continue
		}
		if !slices.Contains(compatible, match.ID) {
			return nil, fmt.Errorf("%s is not one of %s: look whether it may be linked", match.ID, strings.Join(compatible, ", "))
		}
		names = append(names, match.ID)
	}
	if len(names) == 0 {
		return nil, errors.New("no licence that is known")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// sameTerms reports whether two copies of the Apache License have the same terms, and the first has no copyright line of its own in the
// appendix.
func sameTerms(content, own string) bool {
	terms, appendix := split(content)
	ownTerms, _ := split(own)
	return terms == ownTerms && (!strings.Contains(appendix, "Copyright") || placeholder.MatchString(appendix))
}

var placeholder = regexp.MustCompile(`Copyright [\[{]yyyy[\]}] [\[{]name of copyright owner[\]}]`)

// split returns the terms, with their white space normalized, and the appendix.
func split(license string) (terms, appendix string) {
	terms, appendix, _ = strings.Cut(license, "END OF TERMS AND CONDITIONS")
	return strings.Join(strings.Fields(terms), " "), appendix
}
