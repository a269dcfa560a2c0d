package inplace

import "testing"

func TestPartitionKeeps(t *testing.T) {
	for _, test := range []struct {
		partition  string
		pods, kept int
	}{
		{"", 10, 0}, {"0", 10, 0}, {"0percent", 10, 0}, {"3", 10, 3}, {"10", 10, 10}, {"11", 10, 10}, {"999999999", 3, 3}, {"007", 10, 7},
		{"30percent", 10, 3}, {"25percent", 10, 3}, {"1percent", 10, 1}, {"99percent", 10, 9}, {"91percent", 10, 9},
		{"100percent", 10, 10}, {"00percent", 10, 0}, {"50percent", 3, 2},
		{"99percent", 2, 1}, {"1percent", 2, 1}, {"1percent", 1, 1}, {"99percent", 1, 1}, {"0percent", 1, 0},
		{"100percent", 1, 1}, {"5", 0, 0}, {"50percent", 0, 0}, {"100percent", 0, 0},
		{"half", 10, 10}, {"101percent", 10, 10}, {"-1", 10, 10}, {"1.5", 10, 10}, {" 3", 10, 10},
		{"3percentpercent", 10, 10}, {"1234567890", 3, 3},
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
		"begins":                     {"30percent", 10, 10, 0, 7},
		"goes on":                    {"30percent", 10, 6, 4, 3},
		"stage reached":              {"30percent", 10, 3, 7, 0},
		"raised later":               {"80percent", 10, 3, 7, 0},
		"an old pod is missing":      {"30percent", 10, 2, 7, 0},
		"an updated pod is missing":  {"30percent", 10, 3, 6, 0},
		"scaled up, not yet there":   {"30percent", 20, 10, 0, 4},
		"scaled down, not yet gone":  {"30percent", 5, 3, 7, 0},
		"all":                        {"100percent", 10, 10, 0, 0},
		"what does not parse":        {"all but one", 10, 10, 0, 0},
		"nothing wanted, pods there": {"50percent", 0, 2, 0, 2},
	} {
		if may := (Partition{Value: test.partition}).MayMove(test.wanted, test.old, test.updated); may != test.may {
			t.Errorf("%s: %d may move, not %d", name, may, test.may)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	for value, flawed := range map[string]bool{
		"": true, "0": false, "30percent": false, "101percent": true, "1e3": true, "\t3": true, "٣": true,
	} {
		if flaw := PartitionOf(map[string]string{LabelPartition: value}).Flaw(); (flaw != "") != flawed {
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
		{"100percent", "9", 10}, {"90percent", "8", 10}, {"8", "6", 10}, {"6", "2", 10}, {"2", "0", 10}, {"0", "0", 10}, {"", "0", 10},
		{"95percent", "18", 20}, {"50percent", "0", 4}, {"1", "0", 1}, {"5", "0", 1}, {"5", "0", 0},
	} {
		if next := (Partition{Value: test.partition}).Next(test.pods); next.Value != test.next {
			t.Errorf("after %q of %d pods comes %q, not %q", test.partition, test.pods, next, test.next)
		}
	}
}
