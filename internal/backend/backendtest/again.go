package backendtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
)

func startsTwice(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	s.start(t, cmd)
	s.start(t, cmd)
	s.sink.started(t, 1)
	s.start(t, cmd)
	s.world.Release(t, cmd.Path)
	ends(t, s.sink.result(t, 1, 1), engine.SucceededPhase, 0)
	s.runs(t, cmd.Path, 1)
}

func startsEnded(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Print: "x", Files: map[string]string{"a": "bytes"}, Artifacts: []string{"a"}})
	s.start(t, cmd)
	first := s.sink.result(t, 1, 1)
	s.start(t, cmd)
	second := s.sink.result(t, 1, 2)
	s.close(t)
	s.open(t)
	s.start(t, cmd)
	third := s.sink.result(t, 1, 3)
	for _, again := range []engine.Result{second, third} {
		if diff := cmp.Diff(first, again); diff != "" {
			t.Error(diff)
		}
	}
	s.runs(t, cmd.Path, 1)
}

func adopts(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true, Print: "x"})
	s.start(t, cmd)
	s.sink.started(t, 1)
	s.close(t)
	s.open(t)
	s.start(t, cmd)
	s.sink.started(t, 2)
	if _, ended := s.sink.count(1); ended != 0 {
		t.Fatal("it ended before it was released")
	}
	s.world.Release(t, cmd.Path)
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.SucceededPhase, 0)
	if *r.Outputs.Result != "x" {
		t.Errorf("result %q", *r.Outputs.Result)
	}
	s.runs(t, cmd.Path, 1)
}

func endsAlone(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true, Files: map[string]string{"p": "7"}, Parameters: []string{"p"}})
	s.start(t, cmd)
	s.sink.started(t, 1)
	s.close(t)
	s.world.Release(t, cmd.Path)
	s.open(t)
	s.start(t, cmd)
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.SucceededPhase, 0)
	if r.Outputs.Parameters["p"] != "7" {
		t.Errorf("parameters %v", r.Outputs.Parameters)
	}
	s.runs(t, cmd.Path, 1)
}

func stopsAdopted(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	s.start(t, cmd)
	s.sink.started(t, 1)
	s.close(t)
	s.open(t)
	s.start(t, cmd)
	s.sink.started(t, 2)
	s.world.Began(t, cmd.Path)
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path})
	ends(t, s.sink.result(t, 1, 1), engine.FailedPhase, 143)
}

func forgets(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Exit: 1})
	s.start(t, cmd)
	s.sink.result(t, 1, 1)
	if err := s.backend.Forget(t.Context(), run, cmd.Path); err != nil {
		t.Fatal(err)
	}
	if err := s.backend.Forget(t.Context(), run, "run.nothing"); err != nil {
		t.Errorf("to forget nothing: %v", err)
	}
	s.start(t, cmd)
	ends(t, s.sink.result(t, 1, 2), engine.FailedPhase, 1)
	s.runs(t, cmd.Path, 2)
}
