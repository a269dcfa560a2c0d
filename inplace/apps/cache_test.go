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
	for i := range 10 * mostFound / longestFound {
		ask(fmt.Sprint(i), longestFound)
		ask("kept", 1) // asked for all the time
	}
	if before := asked; before != 1+10*mostFound/longestFound {
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
