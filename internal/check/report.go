package check

// Topic is one part of what is checked.
type Topic string

// The topics, in the order in which they are checked. Those up to Admission are about the cluster, the others about the installation.
const (
	Kubernetes  Topic = "Kubernetes"
	Controllers Topic = "native controllers"
	Images      Topic = "images first"
	Admission   Topic = "other webhooks and policies"
	Certificate Topic = "certificate"
	Managers    Topic = "managers"
	Rights      Topic = "rights"
	Webhooks    Topic = "webhooks"
	Passing     Topic = "writes"
	Own         Topic = "policies"
	Namespaces  Topic = "labels"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	// Error: updates are native, or are refused, until it is mended.
	Error Level = "error"
	// Warning: updates in place work, with less than they could have, or not everywhere.
	Warning Level = "warning"
	// Unchecked: the API server did not let the check read what it needs.
	Unchecked Level = "unchecked"
)

// Finding is one thing that is wrong.
type Finding struct {
	Level   Level  `json:"level"`
	About   Topic  `json:"about"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// Passed says what was found where nothing is wrong.
type Passed struct {
	About Topic  `json:"about"`
	Says  string `json:"says"`
}

// Report is the result of a check.
type Report struct {
	// Installed reports whether Stayput is in the cluster. If not, only the cluster was checked.
	Installed bool      `json:"installed"`
	Findings  []Finding `json:"findings"`
	Passed    []Passed  `json:"passed"`
}

// Has reports whether there is a finding of that level.
func (r Report) Has(level Level) bool { return r.count(level) > 0 }

func (r Report) count(level Level) (n int) {
	for _, each := range r.Findings {
		if each.Level == level {
			n++
		}
	}
	return n
}

// verdict is the result for one topic.
type verdict struct {
	about    Topic
	findings []Finding
}

func (v *verdict) add(level Level, problem, remedy string) {
	v.findings = append(v.findings, Finding{level, v.about, problem, remedy})
}

// wrong adds a finding of level Error.
func (v *verdict) wrong(problem, remedy string) { v.add(Error, problem, remedy) }

// less adds a finding of level Warning.
func (v *verdict) less(problem, remedy string) { v.add(Warning, problem, remedy) }
