package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apache is short for the terms of the Apache License, which only sameTerms compares here.
const apache = "Apache License\nTerms.\nEND OF TERMS AND CONDITIONS\n"

func sample() []text {
	perks, kube, yaml := module{"example.com/perks", "v1.0.1"}, module{"example.com/kube", "v0.36.3"}, module{"example.com/yaml", "v3.0.1"}
	return []text{
		{file{kube, "LICENSE", ""}, "Apache License\n  Terms.\nEND OF TERMS AND CONDITIONS", []string{"Apache-2.0"}},
		{file{kube, "third_party/LICENSE", ""}, "BSD of Go", []string{"BSD-3-Clause"}},
		{file{perks, "LICENSE", ""}, "MIT of perks", []string{"MIT"}},
		{file{yaml, "LICENSE", ""}, "BSD of Go", []string{"BSD-3-Clause"}},
		{file{yaml, "NOTICE", ""}, "notice of yaml", nil},
	}
}

func TestListHasALinePerModule(t *testing.T) {
	got := strings.TrimPrefix(list(sample()), product)
	want := `example.com/kube v0.36.3: Apache-2.0 AND BSD-3-Clause, https://pkg.go.dev/example.com/kube@v0.36.3?tab=licenses
example.com/perks v1.0.1: MIT, https://pkg.go.dev/example.com/perks@v1.0.1?tab=licenses
example.com/yaml v3.0.1: BSD-3-Clause, https://pkg.go.dev/example.com/yaml@v3.0.1?tab=licenses
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEachTextIsPassedOnOnce(t *testing.T) {
	got := passedOn(sample(), apache)
	for _, want := range []string{
		"\nexample.com/kube v0.36.3 (third_party/LICENSE)\nexample.com/yaml v3.0.1 (LICENSE)\n\nBSD of Go\n",
		"\nexample.com/perks v1.0.1 (LICENSE)\n\nMIT of perks\n",
		"\nexample.com/yaml v3.0.1 (NOTICE)\n\nnotice of yaml\n",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("not once:%s\nin\n%s", want, got)
		}
	}
	if strings.Contains(got, "Terms.") {
		t.Errorf("Stayput's own licence is repeated:\n%s", got)
	}
}

func TestApacheLicenseWithAnOwnCopyrightIsPassedOn(t *testing.T) {
	for appendix, same := range map[string]bool{
		"": true,
		"APPENDIX\nCopyright [yyyy] [name of copyright owner]": true,
		"APPENDIX\nCopyright {yyyy} {name of copyright owner}": true,
		"APPENDIX\nCopyright 2013-2018 Docker, Inc.":           false,
	} {
		if got := sameTerms(apache+appendix, apache); got != same {
			t.Errorf("sameTerms with %q = %t", appendix, got)
		}
	}
	if sameTerms("Apache License\nOther terms.\nEND OF TERMS AND CONDITIONS", apache) {
		t.Error("other terms count as the same")
	}
}

// gpl is what files under a licence say that may not be linked.
const gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License " +
	"as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."

func TestJudge(t *testing.T) {
	own, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := judge(own); err != nil || !slices.Equal(got, []string{"Apache-2.0"}) {
		t.Errorf("Stayput's own licence: %v, %v", got, err)
	}
	if got, err := judge([]byte("All rights reserved.")); err == nil {
		t.Errorf("a text without a licence: %v", got)
	}
	if got, err := judge([]byte(gpl)); err == nil || !strings.HasPrefix(err.Error(), "GPL-3.0-or-later is not one of") {
		t.Errorf("a licence that is not compatible: %v, %v", got, err)
	}
}

func TestLegalFiles(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE": true, "license.md": true, "LICENSE-MIT": true, "LICENSE.txt": true, "COPYING": true, "NOTICE": true,
		"LICENSE.docs": false, "license.go": false, "README.md": false, "LICENSES": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := isLegal(entries[0]); got != want {
			t.Errorf("isLegal(%s) = %t", name, got)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// This command links one module, so its own pages are short.
func TestPagesOfThisCommand(t *testing.T) {
	for kind, want := range map[string][]string{
		"list": {
			"Go standard library: BSD-3-Clause, https://go.dev/LICENSE\n",
			"github.com/google/licensecheck v0.3.1: BSD-3-Clause, https://pkg.go.dev/github.com/google/licensecheck@v0.3.1?tab=licenses\n",
		},
		"texts": {"\nGo standard library (LICENSE)\n", "\ngithub.com/google/licensecheck v0.3.1 (LICENSE)\n"},
	} {
		var out strings.Builder
		if err := run(&out, []string{kind, "../../LICENSE", "."}); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(out.String(), line) {
				t.Errorf("%s: no %q in\n%s", kind, line, out.String())
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"list", "LICENSE"}, {"all", "LICENSE", "."}} {
		if err := run(&strings.Builder{}, args); err == nil {
			t.Errorf("notice %v: no error", args)
		}
	}
}
