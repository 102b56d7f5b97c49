package backendtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
)

// task makes a command for node 1.
func (s *suite) task(t *testing.T, b Behaviour) engine.StartTask {
	t.Helper()
	cmd := s.world.Task(t, "run.task", b)
	cmd.Node, cmd.Path = 1, "run.task"
	return cmd
}

func succeeds(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{
		Print: "hello\n", Files: map[string]string{"p": "7\n", "a": "bytes"}, Parameters: []string{"p"}, Artifacts: []string{"a"},
	})
	s.start(t, cmd)
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.SucceededPhase, 0)
	if running, _ := s.sink.count(1); running != 1 {
		t.Errorf("told %d times that it runs", running)
	}
	if r.Outputs.Result == nil || *r.Outputs.Result != "hello" {
		t.Errorf("result %v", r.Outputs.Result)
	}
	if diff := cmp.Diff(map[string]any{"p": "7"}, r.Outputs.Parameters); diff != "" {
		t.Error(diff)
	}
	a := r.Outputs.Artifacts["a"]
	if len(a) != 1 || a[0].Size != 5 || !strings.HasPrefix(a[0].Digest, "sha256:") {
		t.Fatalf("artifacts %+v", r.Outputs.Artifacts)
	}
	if data, err := os.ReadFile(a[0].URI); err != nil || string(data) != "bytes" {
		t.Errorf("stored: %q %v", data, err)
	}
	if r.Started.IsZero() || time.Since(r.Started) > patience {
		t.Errorf("started %v", r.Started)
	}
}

func fails(t *testing.T, s *suite) {
	s.start(t, s.task(t, Behaviour{Exit: 3, Parameters: []string{"p"}, Artifacts: []string{"a"}}))
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.FailedPhase, 3)
	if !strings.Contains(r.Message, "exit code 3") || strings.Contains(r.Message, "no such file") {
		t.Errorf("message %q", r.Message)
	}
	if r.Transient {
		t.Error("a failed command is not transient")
	}
}

func failsWithOutputs(t *testing.T, s *suite) {
	s.start(t, s.task(t, Behaviour{Exit: 1, Print: "out", Files: map[string]string{"p": "7"}, Parameters: []string{"p"}}))
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.FailedPhase, 1)
	if r.Outputs.Parameters["p"] != "7" || r.Outputs.Result == nil || *r.Outputs.Result != "out" {
		t.Errorf("outputs %+v", r.Outputs)
	}
}

func missesArtifact(t *testing.T, s *suite) {
	s.start(t, s.task(t, Behaviour{Artifacts: []string{"a"}}))
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.ErrorPhase, 0)
	if r.Transient {
		t.Error("the command ran: to run it again may do harm")
	}
}

func missesParameter(t *testing.T, s *suite) {
	s.start(t, s.task(t, Behaviour{Parameters: []string{"p"}}))
	ends(t, s.sink.result(t, 1, 1), engine.ErrorPhase, 0)
}

func hasDefault(t *testing.T, s *suite) {
	s.start(t, s.task(t, Behaviour{Parameters: []string{"p"}, Defaults: map[string]string{"p": "d"}}))
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.SucceededPhase, 0)
	if r.Outputs.Parameters["p"] != "d" {
		t.Errorf("parameters %v", r.Outputs.Parameters)
	}
}

func stops(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	s.start(t, cmd)
	s.world.Began(t, cmd.Path)
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path, Message: "enough of it"})
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.FailedPhase, 143)
	if r.Message != "enough of it" {
		t.Errorf("message %q", r.Message)
	}
}

func stopsAtOnce(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	s.start(t, cmd)
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path, Message: "never mind"})
	r := s.sink.result(t, 1, 1)
	if r.Phase != engine.FailedPhase || r.Message != "never mind" {
		t.Errorf("%+v", r)
	}
}

func stopsDeaf(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true, Deaf: true})
	s.start(t, cmd)
	s.world.Began(t, cmd.Path)
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path})
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path, Force: true})
	ends(t, s.sink.result(t, 1, 1), engine.FailedPhase, 137)
}

func stopsNothing(t *testing.T, s *suite) {
	s.stop(t, engine.StopTask{Node: 9, Path: "run.nothing"})
}

func timesOut(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	cmd.Timeout = 50 * time.Millisecond
	s.start(t, cmd)
	r := s.sink.result(t, 1, 1)
	ends(t, r, engine.FailedPhase, 143)
	if !strings.Contains(r.Message, "timeout") {
		t.Errorf("message %q", r.Message)
	}
}

func runsMany(t *testing.T, s *suite) {
	const many = 25
	for i := range many {
		path := fmt.Sprintf("run.t(%d:x)", i)
		cmd := s.world.Task(t, path, Behaviour{Print: fmt.Sprint(i)})
		cmd.Node, cmd.Path = engine.NodeID(i+1), path
		s.start(t, cmd)
	}
	for i := range many {
		r := s.sink.result(t, engine.NodeID(i+1), 1)
		ends(t, r, engine.SucceededPhase, 0)
		if *r.Outputs.Result != fmt.Sprint(i) {
			t.Errorf("task %d printed %s", i, *r.Outputs.Result)
		}
	}
}

func daemonIsReady(t *testing.T, s *suite) {
	cmd := s.task(t, Behaviour{Wait: true})
	cmd.Daemon = true
	s.start(t, cmd)
	if r := s.sink.started(t, 1); !r.Ready || r.IP == "" {
		t.Errorf("running: %+v", r)
	}
	s.stop(t, engine.StopTask{Node: 1, Path: cmd.Path})
	s.sink.result(t, 1, 1)
}
