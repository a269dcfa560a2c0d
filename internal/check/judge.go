package check

import (
	"fmt"
	"strings"
)

// again is what mends an installation of which something is missing.
const again = "install Stayput again as it was installed: helm upgrade, make install, or kubectl apply"

// judges has a judge for each topic, in the order of the report. Each returns what to say where it has found nothing.
var judges = []struct {
	about Topic
	// installed says that the topic is about an installation. Without one it is left out.
	installed bool
	judge     func(Facts, *verdict) (says string)
}{
	{Kubernetes, false, judgeKubernetes},
	{Controllers, false, judgeControllers},
	{Images, false, judgeImages},
	{Admission, false, judgeAdmission},
	{Certificate, false, judgeCertificate},
	{Managers, true, judgeManagers},
	{Rights, true, judgeRights},
	{Webhooks, true, judgeWebhooks},
	{Passing, true, judgePassing},
	{Own, true, judgeOwnPolicies},
	{Namespaces, true, judgeNamespaces},
}

// Judge says what is right and what is wrong.
func Judge(f Facts) Report {
	report := Report{Installed: f.installed(), Findings: []Finding{}, Passed: []Passed{}}
	for _, topic := range judges {
		if topic.installed && !report.Installed {
			continue
		}
		v := &verdict{about: topic.about}
		says := f.unread(topic.about, v)
		if len(v.findings) == 0 {
			says = topic.judge(f, v)
		}
		report.Findings = append(report.Findings, v.findings...)
		if len(v.findings) == 0 && says != "" {
			report.Passed = append(report.Passed, Passed{topic.about, says})
		}
	}
	return report
}

// installed reports whether something of Stayput acts, or is meant to act, on the cluster.
func (f Facts) installed() bool {
	return f.Manager != nil || f.Mutating != nil || f.Validating != nil
}

// managersRun reports whether a manager is available. Without one, nothing can answer.
func (f Facts) managersRun() bool { return f.Manager != nil && f.Manager.Status.AvailableReplicas > 0 }

// unread adds a finding if the topic could not be read.
func (f Facts) unread(about Topic, v *verdict) string {
	if err := f.Unread[about]; err != nil {
		v.add(Unchecked, err.Error(), "run the check as a user who may read this; an administrator (cluster-admin) may read all")
	}
	return ""
}

// listed joins names for a sentence: the first few, and how many more.
func listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
