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

func TestAndShown(t *testing.T) {
	var reasons Reasons
	for i := range MostReasons {
		reasons = append(reasons, Reason{Message: fmt.Sprint(i)})
	}
	for n, want := range map[int]string{
		0:           "one",
		2:           "0; 1; one",
		9:           "0; 1; 2; 3; 4; 5; 6; 7; 8; one",
		10:          "0; 1; 2; 3; 4; 5; 6; 7; 8; one; and 1 more",
		MostReasons: "0; 1; 2; 3; 4; 5; 6; 7; 8; one; and 90 more",
	} {
		if got := reasons[:n].AndShown(Reason{Message: "one"}).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if reasons[9].Message != "9" {
		t.Error("the reasons before have changed")
	}
}
