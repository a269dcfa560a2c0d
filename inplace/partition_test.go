package inplace

import "testing"

func TestPartitionKeeps(t *testing.T) {
	for _, test := range []struct {
		partition  string
		pods, kept int
	}{
		{"", 10, 0}, {"0", 10, 0}, {"0%", 10, 0}, {"3", 10, 3}, {"10", 10, 10}, {"11", 10, 10}, {"999999999", 3, 3}, {"007", 10, 7},
		{"30%", 10, 3}, {"25%", 10, 3}, {"1%", 10, 1}, {"99%", 10, 9}, {"91%", 10, 9},
		{"100%", 10, 10}, {"00%", 10, 0}, {"50%", 3, 2},
		{"99%", 2, 1}, {"1%", 2, 1}, {"1%", 1, 1}, {"99%", 1, 1}, {"0%", 1, 0},
		{"100%", 1, 1}, {"5", 0, 0}, {"50%", 0, 0}, {"100%", 0, 0},
		{"half", 10, 10}, {"101%", 10, 10}, {"-1", 10, 10}, {"1.5", 10, 10}, {" 3", 10, 10},
		{"3%%", 10, 10}, {"1234567890", 3, 3},
	} {
		if kept := (Partition{Value: test.partition}).Keeps(test.pods); kept != test.kept {
			t.Errorf("%q keeps %d of %d pods, not %d", test.partition, kept, test.pods, test.kept)
		}
	}
}

func TestPartitionMayMove(t *testing.T) {
	for name, test := range map[string]struct {
		partition            string
		wanted, old, updated int
		may                  int
	}{
		"none":                       {"", 10, 10, 0, 10},
		"none, and pods too many":    {"", 3, 4, 2, 4},
		"begins":                     {"30%", 10, 10, 0, 7},
		"goes on":                    {"30%", 10, 6, 4, 3},
		"stage reached":              {"30%", 10, 3, 7, 0},
		"raised later":               {"80%", 10, 3, 7, 0},
		"an old pod is missing":      {"30%", 10, 2, 7, 0},
		"an updated pod is missing":  {"30%", 10, 3, 6, 0},
		"scaled up, not yet there":   {"30%", 20, 10, 0, 4},
		"scaled down, not yet gone":  {"30%", 5, 3, 7, 0},
		"all":                        {"100%", 10, 10, 0, 0},
		"what does not parse":        {"all but one", 10, 10, 0, 0},
		"nothing wanted, pods there": {"50%", 0, 2, 0, 2},
	} {
		if may := (Partition{Value: test.partition}).MayMove(test.wanted, test.old, test.updated); may != test.may {
			t.Errorf("%s: %d may move, not %d", name, may, test.may)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	for value, flawed := range map[string]bool{
		"": true, "0": false, "30%": false, "101%": true, "1e3": true, "\t3": true, "٣": true,
	} {
		if flaw := PartitionOf(map[string]string{AnnotationPartition: value}).Flaw(); (flaw != "") != flawed {
			t.Errorf("%q: %s", value, flaw)
		}
	}
	if none := PartitionOf(nil); none != (Partition{}) || none.Flaw() != "" {
		t.Errorf("without the label it is %q", none)
	}
}

func TestPartitionNext(t *testing.T) {
	for _, test := range []struct {
		partition, next string
		pods            int
	}{
		{"100%", "9", 10}, {"90%", "8", 10}, {"8", "6", 10}, {"6", "2", 10}, {"2", "0", 10}, {"0", "0", 10}, {"", "0", 10},
		{"95%", "18", 20}, {"50%", "0", 4}, {"1", "0", 1}, {"5", "0", 1}, {"5", "0", 0},
	} {
		if next := (Partition{Value: test.partition}).Next(test.pods); next.Value != test.next {
			t.Errorf("after %q of %d pods comes %q, not %q", test.partition, test.pods, next, test.next)
		}
	}
}
