package steps

import "testing"

// TestImagesAfter: the count of nodes is told only together with a message, and only where nodes pull images.
func TestImagesAfter(t *testing.T) {
	some := Images{On: 1, Nodes: 2}
	for _, test := range []struct {
		images        Images
		message, want string
	}{
		{some, "waiting for the window", "waiting for the window; new images on 1 of 2 nodes"},
		{Images{}, "waiting for the window", "waiting for the window"},
		{some, "", ""},
		{Images{}, "", ""},
	} {
		if got := test.images.After(test.message); got != test.want {
			t.Errorf("%+v after %q: %q, want %q", test.images, test.message, got, test.want)
		}
	}
}
