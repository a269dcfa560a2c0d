//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// promoted promotes an update stage by stage until all pods are updated.
func promoted(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(4))
	before := s.pods("web")
	s.kubectl(s.recipe(), "apply", "-f", "-")
	promote := []string{"promote", "deployment/web", "--timeout", "2m", "--as", "system:serviceaccount:" + s.namespace + ":promote"}
	s.repartition("web", "3")
	s.answers("", 0, []string{"nothing to promote"}, promote...)
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.keeps("web", 3, 4)
	s.answers("", 0, []string{"has reached its stage: 2 of 4 pods are updated"}, promote...)
	s.answers("", 0, []string{"is updated: all 4 pods"}, promote...)
	s.completes("web")
	s.kept("web", before, once)
	s.runs("web", "v2")
}

// recipe returns the objects with the CronJob of docs/how-to/staged-rollouts.md, for the scenario's namespace. The CronJob runs rarely.
func (s *scenario) recipe() string {
	s.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "how-to", "staged-rollouts.md"))
	if err != nil {
		s.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "```yaml\napiVersion: v1\nkind: ServiceAccount\n")
	recipe, _, found := strings.Cut("apiVersion: v1\nkind: ServiceAccount\n"+recipe, "\n```")
	if !found || !strings.Contains(recipe, "kind: CronJob") {
		s.Fatal("the page has no recipe with a CronJob")
	}
	rarely := strings.NewReplacer("namespace: shop", "namespace: "+s.namespace, "--namespace shop", "--namespace "+s.namespace,
		"[shop]", "["+s.namespace+"]", `"*/10 * * * *"`, `"0 0 1 1 *"`)
	return rarely.Replace(recipe)
}

// promotedByCronJob checks that a Job of the recipe's CronJob, inside the cluster, lets an update go on to its last stage. Its image has
// the plugin and nothing else. So it runs the recipe's last line, and the query before it is left out.
func promotedByCronJob(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(2))
	before := s.pods("web")
	recipe, script, found := strings.Cut(s.recipe(), "command: [sh, -c]")
	at := strings.Index(script, "kubectl-stayput ")
	if !found || at < 0 {
		t.Fatal("the recipe's CronJob does not run kubectl-stayput in a shell")
	}
	arguments := strings.Fields(script[at:])[1:]
	recipe = strings.Replace(recipe, "registry.example/promote:1", pushPlugin(t), 1)
	s.kubectl(recipe+"command: [/app, "+strings.Join(arguments, ", ")+"]\n", "apply", "-f", "-")
	s.repartition("web", "1")
	s.setImage("web", "app=v2")
	s.keeps("web", 1, 2)
	s.kubectl("", "create", "job", "promote-now", "--from=cronjob/promote-web")
	s.eventually("the Job to be complete", func(ctx context.Context) error {
		conditions, _, err := kubectl(ctx, "", "-n", s.namespace, "get", "job", "promote-now", "-o", "jsonpath={.status.conditions[*].type}")
		if err == nil && !strings.Contains(conditions, "Complete") {
			said, _, _ := kubectl(ctx, "", "-n", s.namespace, "logs", "job/promote-now")
			return fmt.Errorf("its conditions are %q, and it says %q", conditions, said)
		}
		return err
	})
	s.completes("web")
	s.kept("web", before, once)
	s.runs("web", "v2")
}

// pushPlugin pushes kubectl's plugin as an image, and returns its reference. The tag has a hash of the program: nodes keep images.
func pushPlugin(t *testing.T) string {
	t.Helper()
	file := filepath.Join(binaries, "kubectl-stayput")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	image := fmt.Sprintf("promote:%.4x", sha256.Sum256(content))
	if output, err := exec.CommandContext(t.Context(), filepath.Join(binaries, "cluster"), "push", image, file).CombinedOutput(); err != nil {
		t.Fatalf("cluster push: %v: %s", err, output)
	}
	return registry + image
}

// promoteStalls checks that promote ends with an error, in the words of the condition, when the next stage crashes; and that it lowers the
// partition no further.
func promoteStalls(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, progressDeadline(10)))
	s.repartition("web", "2")
	s.begin("in place", inPlace)
	s.setImage("web", "app=crash")
	s.fails("web", "CrashLoopBackOff")
	s.answers("", 1, []string{"the update has stalled: ReplicaSet", "has timed out progressing."},
		"promote", "deployment/web", "--timeout", "1m")
	s.wait("the partition to be as before", on("web", func(_ world, d *appsv1.Deployment) error {
		if at := d.Annotations[partitionSetting]; at != "2" {
			return errors.New("it is " + at)
		}
		return nil
	}))
	s.rollout("undo", "web")
	s.completes("web")
}
