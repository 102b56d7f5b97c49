package argoexpr_test

import (
	"testing"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// flat is a scope whose look-ups cost next to nothing, so that the language is measured and not the scope.
type flat struct{ value any }

func (f flat) Lookup(path []string) (any, expr.Presence) {
	if len(path) == 3 || len(path) == 4 {
		return f.value, expr.Present
	}
	return nil, expr.Absent
}

func BenchmarkText(b *testing.B) {
	l := argoexpr.New()
	e := expr.Env{Scope: flat{"value"}, Now: now}
	for _, bb := range []struct{ name, src string }{
		{"plain", "no tag in here"},
		{"tag", "{{inputs.parameters.x}}"},
		{"tag in text", "echo {{inputs.parameters.x}} and so on"},
		{"five tags", "{{inputs.parameters.a}} {{inputs.parameters.b}} {{steps.a.outputs.result}} {{steps.b.outputs.result}} {{inputs.parameters.c}}"},
		{"expression", "{{=inputs.parameters.x}}"},
		{"expression with function", "{{=sprig.upper(inputs.parameters.x)}}"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Text(bb.src, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCondition(b *testing.B) {
	l := argoexpr.New()
	e := expr.Env{Scope: flat{"heads"}, Now: now}
	for _, bb := range []struct{ name, form, src string }{
		{"when", "when", "{{steps.flip.outputs.result}} == heads"},
		{"expression", "expression", "steps.flip.outputs.result == 'heads'"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := l.Condition(program.Condition{Form: bb.form, Source: bb.src}, e); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
