package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// anything stands for any text in a shown line. A line of its own stands for any number of lines.
const anything = "..."

// wild are the parts of output that differ from run to run. Both sides get the same words for them.
var wild = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\b\d{2}:\d{2}:\d{2}\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "ADDRESS"},
	// Names of pods end with the hash of a ReplicaSet or revision and five more characters, in Kubernetes' own alphabet.
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-POD"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b`), "-HASH"},
	{regexp.MustCompile(`\bnode-\d+\b`), "NODE"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?s\b`), "AGE"},
	{regexp.MustCompile(`\b\d+m\b`), "AGE"},
}

// plain returns the line with single spaces, and with words for what differs from run to run.
func plain(line string) string {
	for _, part := range wild {
		line = part.pattern.ReplaceAllString(line, part.word)
	}
	return strings.Join(strings.Fields(line), " ")
}

// Differs returns how the actual output differs from the shown one, or nothing.
//
// Names of pods, hashes, UIDs, ages, times, addresses and names of nodes match any others. So does "..." within a line, and a line "..."
// any lines. The number of spaces does not matter, and neither does the order of lines: tables are in the order of names, which differ, and
// warnings come by another way than the rest. All other words must be the same, and no line may be too many.
func Differs(shown []string, actual string) string {
	var exact, patterns []string
	var more bool
	for _, line := range shown {
		switch line = plain(line); {
		case line == anything:
			more = true
		case strings.Contains(line, anything):
			patterns = append(patterns, line)
		default:
			exact = append(exact, line)
		}
	}
	left := slices.DeleteFunc(lines(actual), func(line string) bool { return strings.TrimSpace(line) == "" })
	for i, line := range left {
		left[i] = plain(line)
	}
	var missing []string
	for _, line := range append(exact, patterns...) {
		if at := slices.IndexFunc(left, func(candidate string) bool { return matches(line, candidate) }); at >= 0 {
			left = slices.Delete(left, at, at+1)
		} else {
			missing = append(missing, line)
		}
	}
	if more {
		left = nil
	}
	return report(missing, left)
}

// matches reports whether the line has the parts of the pattern between "...".
func matches(pattern, line string) bool {
	parts := strings.Split(pattern, anything)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(line)
}

func report(missing, extra []string) string {
	var said []string
	for _, line := range missing {
		said = append(said, fmt.Sprintf("shown, but not printed: %s", line))
	}
	for _, line := range extra {
		said = append(said, fmt.Sprintf("printed, but not shown: %s", line))
	}
	return strings.Join(said, "\n")
}
