package e2e

import (
	"slices"
	"time"
)

// outage is a time during which a member of a system does not serve: from the first request that it did not answer to the last one. It is
// longer in truth. So two outages that overlap did so without doubt.
type outage struct {
	member   int
	from, to time.Time
}

// fewestServing returns how many of so many members served at the worst moment. That moment is the beginning of an outage.
func fewestServing(members int, outages []outage) int {
	fewest := members
	for _, begins := range outages {
		var missing []int
		for _, each := range outages {
			if !each.from.After(begins.from) && !each.to.Before(begins.from) && !slices.Contains(missing, each.member) {
				missing = append(missing, each.member)
			}
		}
		fewest = min(fewest, members-len(missing))
	}
	return fewest
}

// outagesOf returns the outages of a member whose requests, in their order, were answered or not.
func outagesOf(member int, asked []asked) []outage {
	var outages []outage
	before := true
	for _, each := range asked {
		switch {
		case each.answered:
		case before:
			outages = append(outages, outage{member: member, from: each.at, to: each.at})
		default:
			outages[len(outages)-1].to = each.at
		}
		before = each.answered
	}
	return outages
}

// asked is a request to a member.
type asked struct {
	at       time.Time
	answered bool
}
