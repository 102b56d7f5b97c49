package controller

import (
	"fmt"
	"testing"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
)

// BenchmarkShow looks at a fan-out as a whole and makes the patch for one change: what a write costs. Writes are so rare
// that this is a fiftieth of the time at most, so what a task's change costs does not grow with the workflow.
func BenchmarkShow(b *testing.B) {
	for _, n := range []int{100, 1000, 10000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bundle, err := argo.Load(argo.Source{Name: "fan.yaml", Data: fmt.Appendf(nil, `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: fan}
spec:
  entrypoint: main
  templates:
  - name: main
    steps: [[{name: say, template: say, withSequence: {count: "%d"}}]]
  - name: say
    container: {image: alpine, command: [echo, hello]}
`, n)}, nil)
			if err != nil {
				b.Fatal(err)
			}
			p, err := bundle.Compile(argo.Options{})
			if err != nil {
				b.Fatal(err)
			}
			machine, err := engine.New(p, argoexpr.New(), nil)
			if err != nil {
				b.Fatal(err)
			}
			s := engine.NewState()
			if _, err := machine.Step(s, engine.Event{Start: &engine.Start{Run: engine.Run{Name: "fan", UID: "u"}}}); err != nil {
				b.Fatal(err)
			}
			page := status.NewPage(status.Content{}, false, 0, 0)
			b.ResetTimer()
			for b.Loop() {
				c, err := status.Of(argo.Project(p, s, argo.ProjectOptions{}))
				if err != nil {
					b.Fatal(err)
				}
				_, written, err := page.Next(c)
				if err != nil {
					b.Fatal(err)
				}
				written()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
