package apps

import (
	"fmt"
	"strings"
	"testing"
)

func TestFindingsAreFoundOnceAndForgotten(t *testing.T) {
	asked, f := 0, Findings[string, int]{}
	ask := func(text string, size int) {
		f.Of(text, size, func() int { asked++; return asked })
	}
	ask("kept", 1)
	ask("kept", 1)
	if asked != 1 {
		t.Fatalf("it was found %d times", asked)
	}
	ask("longest", longestFound)
	ask("longest", longestFound)
	if asked != 2 {
		t.Errorf("the longest that is remembered was found %d times", asked-1)
	}
	for i := range 10 * mostFound / longestFound {
		ask(fmt.Sprint(i), longestFound)
		ask("kept", 1) // asked for all the time
	}
	if before := asked; before != 2+10*mostFound/longestFound {
		t.Errorf("%d were found", before)
	}
	if held := (len(f.lately) + len(f.before)) * longestFound; held > 3*mostFound {
		t.Errorf("%d bytes are remembered", held)
	}
	before := asked
	ask(strings.Repeat("x", 10), longestFound+1)
	ask(strings.Repeat("x", 10), longestFound+1)
	if asked != before+2 {
		t.Error("what is too long is remembered")
	}
}

// TestFindingsFillTheirRoom: nothing is forgotten as long as all of it fits.
func TestFindingsFillTheirRoom(t *testing.T) {
	asked, f := 0, Findings[int, int]{}
	for range 3 {
		for i := range mostFound / longestFound {
			f.Of(i, longestFound, func() int { asked++; return asked })
		}
	}
	if asked != mostFound/longestFound || len(f.before) != 0 {
		t.Errorf("%d were found, and %d are about to be forgotten", asked, len(f.before))
	}
}

// TestTemplatesShareTheirTexts: a text that comes again is not read again, whether Stayput can work with it or not.
func TestTemplatesShareTheirTexts(t *testing.T) {
	for raw, flawed := range map[string]bool{
		`{"spec":{"containers":[{"name":"app","image":"app:1"}]}}`: false,
		`{"spec":{"containers":"none"}}`:                           true,
	} {
		a, err := ParseTemplate([]byte(raw))
		b, again := ParseTemplate([]byte(raw))
		if (err != nil) != flawed || (again != nil) != flawed {
			t.Errorf("%s is read with %v, then with %v", raw, err, again)
		}
		if &a.raw[0] != &b.raw[0] {
			t.Errorf("%s is kept twice", raw)
		}
	}
}
