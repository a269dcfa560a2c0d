package launcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/component"
)

// status lists the components and fails if not all of them are ready.
func (l *launcher) status(ctx context.Context, _ []string) error {
	table, err := l.table()
	if err != nil {
		return err
	}
	writer := tabwriter.NewWriter(l.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(writer, "NAME\tSTATE\tPROCESS\tAGE\tMEMORY")
	var missing []string
	for _, each := range table {
		row, ready := l.row(ctx, each)
		fmt.Fprintln(writer, strings.Join(row, "\t"))
		if !ready {
			missing = append(missing, each.Name)
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.New("not ready: " + strings.Join(missing, ", "))
	}
	return nil
}

// row returns what is known about one component.
func (l *launcher) row(ctx context.Context, c component.Component) (columns []string, ready bool) {
	recorded, err := l.process(c.Name)
	if err != nil || !recorded.Alive() {
		return []string{c.Name, "not running"}, false
	}
	age, ageErr := recorded.Age()
	rss, rssErr := recorded.RSS()
	if ageErr != nil || rssErr != nil {
		return []string{c.Name, "not running"}, false // it has ended meanwhile
	}
	columns = []string{c.Name, "ready", fmt.Sprint(recorded.PID), age.Truncate(time.Second).String(), fmt.Sprintf("%d MiB", rss>>20)}
	if err := c.Ready(ctx); err != nil {
		columns[1] = "not ready"
		return append(columns, err.Error()), false
	}
	return columns, true
}
