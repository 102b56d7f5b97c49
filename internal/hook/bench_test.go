package hook

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

type counter struct{ answers chan struct{} }

func (c counter) Tell(_ string, e engine.Event) {
	if e.Answered != nil {
		c.answers <- struct{}{}
	}
}

// BenchmarkBuiltin is what a review of a built-in plugin costs, with a thousand under way.
func BenchmarkBuiltin(b *testing.B) {
	hooks, err := LoadFile("h.yaml", []byte(builtin()))
	if err != nil {
		b.Fatal(err)
	}
	registry, err := NewRegistry(hooks)
	if err != nil {
		b.Fatal(err)
	}
	sink := counter{make(chan struct{}, 1000)}
	d, err := New(Config{Registry: registry, Sink: sink, Builtins: map[string]Builtin{"scripted": Static(echo{})}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	run := testRun
	if run.Hooks, err = d.Select(nil); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		d.Ask(context.Background(), run, testProgram, ask(fmt.Sprint("u", n)))
		if n > 1000 {
			<-sink.answers
		}
	}
}

// BenchmarkBacklog is what a review costs while a hundred thousand wait for a hook that says pending.
func BenchmarkBacklog(b *testing.B) {
	hooks, err := LoadFile("h.yaml", []byte(builtin("maxConcurrency: 64")))
	if err != nil {
		b.Fatal(err)
	}
	registry, err := NewRegistry(hooks)
	if err != nil {
		b.Fatal(err)
	}
	sink := counter{make(chan struct{}, 1000)}
	d, err := New(Config{Registry: registry, Sink: sink, Builtins: map[string]Builtin{"scripted": Static(patient{})}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	run := testRun
	if run.Hooks, err = d.Select(nil); err != nil {
		b.Fatal(err)
	}
	for i := range 100_000 {
		d.Ask(context.Background(), run, testProgram, ask(fmt.Sprint("p", i)))
	}
	n := 0
	for b.Loop() {
		n++
		d.Ask(context.Background(), run, testProgram, ask(fmt.Sprint("u", n)))
		<-sink.answers
	}
}

// patient says pending to uids that begin with p.
type patient struct{ echo }

func (patient) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	if r.UID[0] == 'p' {
		return &taskhook.Response{Pending: &v1alpha1.Pending{RetryAfterSeconds: 3600}}, nil
	}
	return nil, nil //nolint:nilnil // Run
}
