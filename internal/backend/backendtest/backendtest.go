// Package backendtest is the one conformance suite of backends: every implementation calls [Run] from its tests.
package backendtest

import (
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes events.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// World is where a backend's tasks live: what a backend does is seen here, and it outlives a backend that is closed.
type World interface {
	// Open gives a backend of this world.
	Open(t *testing.T, sink Sink) backend.Backend
	// Task gives the command for an attempt that does what the behaviour says.
	Task(t *testing.T, path string, b Behaviour) engine.StartTask
	// Runs is how often the attempt's command has been started so far.
	Runs(t *testing.T, path string) int
	// Began waits until the command of an attempt that waits has done everything before.
	Began(t *testing.T, path string)
	// Release lets an attempt that waits end.
	Release(t *testing.T, path string)
}

// Behaviour is what the command of an attempt does, in this order: it prints Print, writes each of Files, waits for
// Release with Wait, and exits with Exit.
type Behaviour struct {
	Print string
	// Files are the contents that it leaves at its output parameters and artifacts, by name; Parameters and Artifacts are
	// the declared ones, which may be more.
	Files                 map[string]string
	Parameters, Artifacts []string
	// Defaults of parameters.
	Defaults map[string]string
	Wait     bool
	// Deaf commands do not end when asked to.
	Deaf bool
	Exit int
}

// patience is how long the suite waits for what must come; nothing takes that long unless it is broken.
const patience = 30 * time.Second

var run = engine.Run{Name: "run", UID: "uid-1", Namespace: "default"}

// Run runs the suite. Each test gets a world of its own.
func Run(t *testing.T, world func(t *testing.T) World) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"a task succeeds", succeeds},
		{"a command fails", fails},
		{"a failed command's outputs are taken", failsWithOutputs},
		{"a missing artifact is an error", missesArtifact},
		{"a missing parameter is an error", missesParameter},
		{"a default stands in for a missing parameter", hasDefault},
		{"starting twice runs once", startsTwice},
		{"starting what has ended reports it again", startsEnded},
		{"a task is stopped", stops},
		{"a task is stopped at once", stopsAtOnce},
		{"a deaf task is stopped by force", stopsDeaf},
		{"stopping nothing is no error", stopsNothing},
		{"a task that takes too long is ended", timesOut},
		{"a running task is adopted", adopts},
		{"a task that ended while nobody looked is reported", endsAlone},
		{"a task is stopped after its adoption", stopsAdopted},
		{"a forgotten task runs again", forgets},
		{"many tasks run", runsMany},
		{"a daemon is ready", daemonIsReady},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{world: world(t), sink: newSink()}
			s.open(t)
			t.Cleanup(func() { s.close(t) })
			test.run(t, s)
		})
	}
}

// suite is one test's backend and what it told.
type suite struct {
	world   World
	sink    *sink
	backend backend.Backend
}

func (s *suite) open(t *testing.T) { s.backend = s.world.Open(t, s.sink) }

func (s *suite) close(t *testing.T) {
	if s.backend == nil {
		return
	}
	if err := s.backend.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.backend = nil
}

func (s *suite) start(t *testing.T, cmd engine.StartTask) {
	t.Helper()
	if err := s.backend.Start(t.Context(), run, cmd); err != nil {
		t.Fatalf("Start: %v", err)
	}
}

func (s *suite) stop(t *testing.T, cmd engine.StopTask) {
	t.Helper()
	if err := s.backend.Stop(t.Context(), run, cmd); err != nil {
		t.Fatalf("Stop: %v", err)
	}
}

func (s *suite) runs(t *testing.T, path string, want int) {
	t.Helper()
	if got := s.world.Runs(t, path); got != want {
		t.Errorf("%s ran %d times, want %d", path, got, want)
	}
}

// ends checks a result's phase and exit code; -1 is for no exit code.
func ends(t *testing.T, r engine.Result, phase engine.Phase, code int) {
	t.Helper()
	if r.Phase != phase {
		t.Fatalf("phase %s, want %s: %+v", r.Phase, phase, r)
	}
	switch {
	case code < 0 && r.ExitCode != nil:
		t.Errorf("exit code %d, want none", *r.ExitCode)
	case code >= 0 && r.ExitCode == nil:
		t.Errorf("no exit code, want %d", code)
	case code >= 0 && *r.ExitCode != code:
		t.Errorf("exit code %d, want %d", *r.ExitCode, code)
	}
	if phase != engine.SucceededPhase && r.Message == "" {
		t.Error("no message says why")
	}
}

// Declare adds the outputs of a behaviour to a command: where is the path of an output in the task, store that of an
// artifact's bytes.
func Declare(cmd *engine.StartTask, b Behaviour, where, store func(name string) string) {
	for _, name := range b.Parameters {
		o := program.Output{Name: name, Path: where(name)}
		if text, there := b.Defaults[name]; there {
			o.Default = &program.Binding{Text: &text}
		}
		cmd.Outputs.Parameters = append(cmd.Outputs.Parameters, o)
	}
	for _, name := range b.Artifacts {
		cmd.Outputs.Artifacts = append(cmd.Outputs.Artifacts, program.OutputArtifact{Name: name, Path: where(name), Archive: "none"})
		if cmd.OutputArtifacts == nil {
			cmd.OutputArtifacts = map[string]program.Artifact{}
		}
		cmd.OutputArtifacts[name] = program.Artifact{
			Name: name, URI: store(name), Store: program.JSON(`{"folder":{"path":"` + store(name) + `"}}`), Archive: "none",
		}
	}
}
