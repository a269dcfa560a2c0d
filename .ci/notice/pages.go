package main

import (
	"fmt"
	"slices"
	"strings"
)

// product is the beginning of NOTICE. The rest is generated.
const product = `Stayput
Copyright 2026 The Stayput Authors

Stayput is licensed under the Apache License, Version 2.0: see LICENSE.

The manager and kubectl's plugin contain the Go modules below; not every platform has all of them.
THIRD_PARTY_LICENSES has the full texts of their licences. It is in the plugin's archives, and in the image under /var/run/ko.
"make licenses" writes it into cmd/stayput/kodata. "make notice" writes this file.

`

// third is the beginning of THIRD_PARTY_LICENSES.
const third = `Licences and notices of the Go modules in Stayput's manager and in kubectl's plugin. NOTICE lists the modules.
A module under the Apache License 2.0 that is not named here has the text of LICENSE.
`

// list returns NOTICE: a line for each module, with the licences of its files.
func list(texts []text) string {
	licenses := map[module][]string{}
	var order []module
	for _, t := range texts {
		if _, known := licenses[t.of]; !known {
			order = append(order, t.of)
		}
		licenses[t.of] = append(licenses[t.of], t.licenses...)
	}
	var b strings.Builder
	b.WriteString(product)
	for _, m := range order {
		names := licenses[m]
		slices.Sort(names)
		fmt.Fprintf(&b, "%s: %s, %s\n", m, strings.Join(slices.Compact(names), " AND "), m.link())
	}
	return b.String()
}

// passedOn returns THIRD_PARTY_LICENSES: each text once, with the files that have it. Stayput's own licence is left out.
func passedOn(texts []text, own string) string {
	owners := map[string][]string{}
	var order []string
	for _, t := range texts {
		if slices.Equal(t.licenses, []string{"Apache-2.0"}) && sameTerms(t.content, own) {
			continue
		}
		if _, known := owners[t.content]; !known {
			order = append(order, t.content)
		}
		owners[t.content] = append(owners[t.content], fmt.Sprintf("%s (%s)", t.of, t.name))
	}
	var b strings.Builder
	b.WriteString(third)
	for _, content := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(owners[content], "\n"), content)
	}
	return b.String()
}
