package inplace

import (
	"fmt"
	"testing"
)

func TestReasonsAreBounded(t *testing.T) {
	var reasons Reasons
	for i := range 12 {
		reasons = append(reasons, Reason{Message: fmt.Sprint(i)})
	}
	for n, want := range map[int]string{
		0:  "",
		1:  "0",
		10: "0; 1; 2; 3; 4; 5; 6; 7; 8; 9",
		12: "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 2 more",
	} {
		if got := reasons[:n].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
