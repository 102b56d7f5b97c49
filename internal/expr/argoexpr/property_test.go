package argoexpr_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// A value goes in as it is, whatever it holds, and is not expanded again.
func TestValuesAreNeverExpanded(t *testing.T) {
	l := argoexpr.New()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SampledFrom([]string{"{{workflow.name}}", "{{=1 + 1}}", "{{", "}}", "{{inputs.parameters.x}}", "\n", `"`, `\`, "a", "ü"})
		value := strings.Join(rapid.SliceOf(pieces).Draw(t, "value"), "")
		before := rapid.StringMatching(`[a-z "\\\n]{0,5}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z "\\\n]{0,5}`).Draw(t, "after")
		e := env(values{"inputs.parameters.x": value, "workflow.name": "wf"})
		for _, tag := range []string{"{{inputs.parameters.x}}", "{{ inputs.parameters.x }}", "{{=inputs.parameters.x}}", "{{= inputs.parameters['x'] }}"} {
			got, err := l.Text(before+tag+after, e)
			if err != nil {
				t.Fatal(err)
			}
			if want := before + value + after; got != want {
				t.Fatalf("%s: got %q, want %q", tag, got, want)
			}
		}
	})
}

// Quoted texts are equal exactly where they are the same.
func TestWhenComparesTexts(t *testing.T) {
	l := argoexpr.New()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z][a-z0-9./_-]{0,6}[a-z]`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		for src, want := range map[string]bool{
			fmt.Sprintf("'%s' == '%s'", a, b):               a == b,
			fmt.Sprintf("%s == '%s'", a, a):                 true,
			fmt.Sprintf("%s != %q && %s == %s", a, b, b, b): a != b,
		} {
			if strings.Contains(src, "true") || strings.Contains(src, "false") || a == "in" || b == "in" {
				continue
			}
			got, err := l.Condition(program.Condition{Form: "when", Source: src}, env(nil))
			if err != nil {
				t.Fatal(src, err)
			}
			if got != want {
				t.Fatalf("%s: %v", src, got)
			}
		}
	})
}

// Many goroutines may use one language, with more sources than the caches hold.
func TestConcurrentUse(t *testing.T) {
	l := argoexpr.New()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 1500 {
				n := i*(g%2+1) + g/2*7
				got, err := l.Text(fmt.Sprintf("%d {{=%d + 1}} {{inputs.parameters.n}}", n, n), env(values{"inputs.parameters.n": "x"}))
				if want := fmt.Sprintf("%d %d x", n, n+1); err != nil || got != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
