//go:build whole

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// crashed is a workflow of three layers whose tasks say when they ran; its last one adds up what they gave.
func crashed(width int) string {
	var b strings.Builder
	b.WriteString(`apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: crash-}
spec:
  entrypoint: main
  parallelism: 4
  templates:
  - name: give
    inputs: {parameters: [{name: number}]}
    script: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh], source: 'sleep 1; echo $(({{inputs.parameters.number}} * 2))'}
  - name: sum
    inputs: {parameters: [{name: numbers}]}
    script: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh], source: 'n=0; for i in {{inputs.parameters.numbers}}; do n=$((n + i)); done; echo $n'}
  - name: main
    outputs: {parameters: [{name: sum, valueFrom: {parameter: '{{tasks.sum.outputs.result}}'}}]} # else nobody reads what it prints
    dag:
      tasks:
`)
	var all, names []string
	for layer := range 3 {
		for i := range width {
			n := layer*width + i
			var needs []string
			if layer > 0 {
				needs = []string{fmt.Sprintf("t%d", n-width), fmt.Sprintf("t%d", (layer-1)*width+(i+1)%width)}
				needs = slices.Compact(needs)
			}
			fmt.Fprintf(&b, "      - {name: t%d, template: give, dependencies: [%s], arguments: {parameters: [{name: number, value: %d}]}}\n", n, strings.Join(needs, ", "), n)
			names, all = append(names, fmt.Sprintf("t%d", n)), append(all, fmt.Sprintf("{{tasks.t%d.outputs.result}}", n))
		}
	}
	fmt.Fprintf(&b, "      - {name: sum, template: sum, dependencies: [%s], arguments: {parameters: [{name: numbers, value: '%s'}]}}\n", strings.Join(names, ", "), strings.Join(all, " "))
	return b.String()
}

// The controller is killed again and again: every task has one pod that ran once, and the outputs are right.
func TestControllerKilled(t *testing.T) {
	ns := namespace(t, "e2e-crash")
	kills := 6
	if text := os.Getenv("SLUICE_CRASH_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("SLUICE_CRASH_KILLS: %v", err)
		}
		kills = n
	}
	const width = 4
	name := submit(t, ns, crashed(width))
	draw := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range kills {
		pause := time.NewTimer(time.Duration(200+draw.IntN(2800)) * time.Millisecond) // the moment is what is random
		select {
		case <-pause.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		if err := site.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := site.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w := finish(t, ns, name, 4*time.Minute)
	w.succeeded(t)
	want := 0
	for i := range 3 * width {
		want += 2 * i
	}
	if got := w.result("sum"); got != strconv.Itoa(want) {
		t.Errorf("the sum is %s, want %d", got, want)
	}
	if n := len(pods(t, ns, name)); n != 3*width+1 {
		t.Errorf("%d pods for %d tasks", n, 3*width+1)
	}
	held := kubectl(t, "", "get", "pods", "--namespace", ns, "-o", "jsonpath={.items[*].metadata.finalizers}")
	if held != "" {
		t.Errorf("pods still have finalizers: %s", held)
	}
}
