package inplace

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// AnnotationMaintenanceWindow says when pods may be updated in place, as in `Sat 02:00-04:00 Europe/Berlin`. Without days it is every
	// day, without a zone UTC, and `;` separates several windows. At other times updates wait as at a partition of `100%`. On a
	// workload, `always` overrides the namespace.
	AnnotationMaintenanceWindow = "stayput.dev/maintenance-window"

	// WindowForm is the regular expression that valid values of AnnotationMaintenanceWindow match, besides the names of zones;
	// manifests/base/policy.yaml has the same.
	WindowForm = `^ *(always|` + windowEntry + `( *; *` + windowEntry + `)*) *$`
	// longestWindow is the greatest length of such a value.
	longestWindow = 250
	// AlwaysOpen is the value of AnnotationMaintenanceWindow with which pods may be updated at any time.
	AlwaysOpen = "always"

	windowEntry = `(` + windowDays + `(,` + windowDays + `)* +)?` + timeOfDay + `-(24:00|` + timeOfDay + `)( +[A-Za-z]+([-+_/A-Za-z0-9]*))?`
	windowDays  = weekday + `(-` + weekday + `)?`
	weekday     = `(Mon|Tue|Wed|Thu|Fri|Sat|Sun)`
	timeOfDay   = `([01][0-9]|2[0-3]):[0-5][0-9]`
)

var (
	windowForm = regexp.MustCompile(WindowForm)
	weekdays   = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"} // as time.Weekday
)

// Window is a value of AnnotationMaintenanceWindow. The empty one is always open.
type Window string

// WindowOf returns the window in annotations.
func WindowOf(annotations map[string]string) Window {
	return Window(valueOf(annotations, AnnotationMaintenanceWindow))
}

// valueOf returns the value of the annotation; if it exists and is empty, which is not valid either, a value that is not.
func valueOf(annotations map[string]string, key string) string {
	value, has := annotations[key]
	if has && value == "" {
		return `""`
	}
	return value
}

// interval is one window: some days of the week, from one time of the day to another one.
type interval struct {
	days     [7]bool // by time.Weekday
	from, to int     // times of the day, in minutes since midnight
	zone     *time.Location
}

// intervals returns what the value says.
func (w Window) intervals() ([]interval, error) {
	if len(w) > longestWindow || !windowForm.MatchString(string(w)) {
		return nil, fmt.Errorf("%.100q is no window; write Sat 02:00-04:00 Europe/Berlin, several separated by ;, or always", string(w))
	}
	if strings.TrimSpace(string(w)) == AlwaysOpen {
		return nil, nil
	}
	var all []interval
	for entry := range strings.SplitSeq(string(w), ";") {
		one, err := intervalIn(strings.Fields(entry))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// intervalIn returns the window that these words say: days, times and a zone.
func intervalIn(words []string) (interval, error) {
	one := interval{days: [7]bool{true, true, true, true, true, true, true}, zone: time.UTC}
	if !strings.Contains(words[0], ":") {
		one.days, words = daysIn(words[0]), words[1:]
	}
	from, to, _ := strings.Cut(words[0], "-")
	one.from, one.to = minutesIn(from), minutesIn(to)
	if one.from == one.to {
		return one, fmt.Errorf("%s is empty; write 00:00-24:00 for a whole day", words[0])
	}
	if len(words) > 1 {
		zone, err := time.LoadLocation(words[1])
		if err != nil || words[1] == "Local" {
			return one, fmt.Errorf("%.50q is no time zone; write a name as Europe/Berlin or UTC", words[1])
		}
		one.zone = zone
	}
	return one, nil
}

// daysIn returns the days in a list as Mon-Wed,Sat. A range may go beyond the end of the week.
func daysIn(list string) (days [7]bool) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, is := strings.Cut(part, "-")
		if !is {
			last = first
		}
		end := slices.Index(weekdays, last)
		for day := slices.Index(weekdays, first); ; day = (day + 1) % 7 {
			if days[day] = true; day == end {
				break
			}
		}
	}
	return days
}

func minutesIn(text string) int {
	var hour, minute int
	_, _ = fmt.Sscanf(text, "%d:%d", &hour, &minute) // WindowForm matches
	return hour*60 + minute
}

// span is a time from a moment to another one.
type span struct{ from, to time.Time }

// spans returns when the interval is open, from the day before now to today's weekday in two weeks: next week, clocks may leave it out.
func (i interval) spans(now time.Time) []span {
	var all []span
	year, month, day := now.In(i.zone).Date()
	for d := day - 1; d <= day+14; d++ {
		at := func(minutes int) time.Time {
			return onClocks(time.Date(year, month, d, 0, minutes, 0, 0, time.UTC), i.zone)
		}
		one := span{at(i.from), at(i.to)}
		if i.to < i.from {
			one.to = at(i.to + 24*60)
		}
		if i.days[at(12*60).Weekday()] && one.from.Before(one.to) {
			all = append(all, one)
		}
	}
	return all
}

// onClocks returns when clocks in the zone show what the time shows. If they leave that out, it is the moment at which they go forward:
// package time takes an earlier or a later one, which depends on the zone.
func onClocks(shown time.Time, zone *time.Location) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, zone)
	_, offset := at.Zone()
	before, after := at.ZoneBounds()
	switch shows := at.Unix() + int64(offset); {
	case shows < shown.Unix():
		return after
	case shows > shown.Unix():
		return before
	}
	return at
}

// openAt reports whether one of the intervals is open, and when that changes next; the zero time if it never does, or not within a week.
// Without any interval, it is always open.
func openAt(intervals []interval, now time.Time) (open bool, changes time.Time) {
	if len(intervals) == 0 {
		return true, time.Time{}
	}
	var spans []span
	for _, one := range intervals {
		spans = append(spans, one.spans(now)...)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	until := now
	for _, one := range spans {
		switch {
		case !until.Before(one.from) && until.Before(one.to):
			open, until = true, one.to
		case !open && one.from.After(now):
			return false, one.from
		}
	}
	if !open || until.After(now.AddDate(0, 0, 7)) {
		return open, time.Time{}
	}
	return true, until
}

// Keeping returns the partition at that time: while the window is closed it keeps all pods. A window that is not valid is closed. Keeping
// also returns when the window opens or closes next; the zero time if it never does, or not within a week.
func (w Window) Keeping(partition Partition, now time.Time) (Partition, time.Time) {
	if w == "" {
		return partition, time.Time{}
	}
	intervals, err := w.intervals()
	if err != nil {
		partition.WindowFlaw = fmt.Sprintf("annotation %s: %v", AnnotationMaintenanceWindow, err)
		return partition, time.Time{}
	}
	open, changes := openAt(intervals, now)
	if !open {
		partition.Closed = "the maintenance window, which opens on " + changes.In(intervals[0].zone).Format("Mon 2006-01-02 15:04 MST")
	}
	return partition, changes
}
