package engine

import (
	"fmt"
	"maps"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// defaultDepth bounds recursion as Argo does.
const defaultDepth = 100

// defaultNodes keeps a run that grows without end from taking the machine's memory.
const defaultNodes = 1_000_000

// start begins the run: parameters, deadline, locks, then the entry call.
func (x *step) start(run Run) {
	s, p := x.s, x.m.program
	if run.MaxDepth == 0 {
		run.MaxDepth = defaultDepth
	}
	s.Run, s.Phase, s.Started = run, RunningPhase, x.now
	s.Suspended = p.Suspend
	if p.Shutdown != "" { // no task of it ever starts
		s.Shutdown, s.Suspended, s.own.Stopping = p.Shutdown, false, stopped(p.Shutdown)
	}
	s.touchRun()
	if n := len(p.Lifecycle); n > maxLifecycle {
		x.endRun(ErrorPhase, fmt.Sprintf("%d lifecycle hooks of the workflow are more than %d", n, maxLifecycle))
		return
	}
	if err := x.runParameters(run.Parameters, run.Artifacts); err != nil {
		x.endRun(ErrorPhase, err.Error())
		return
	}
	if p.Deadline > 0 {
		s.own.Deadline = x.now.Add(runDeadline(p))
		x.emit(SetTimer{Timer: Timer{Kind: DeadlineTimer}, At: s.own.Deadline})
	}
	if len(p.Locks) > 0 && s.Shutdown != "Terminate" {
		locks, err := x.resolveLocks(p.Locks, x.runScope())
		if err != nil {
			x.endRun(ErrorPhase, err.Error())
			return
		}
		s.own.Locked, s.own.Locks = true, locks
		s.Message = x.waitsFor(locks)
		x.emit(AcquireLocks{Path: run.Name, Locks: locks})
		return
	}
	x.enterRoot()
}

// runParameters settles the workflow's parameters and artifacts: given, else default.
func (x *step) runParameters(given map[string]any, artifacts map[string][]program.Artifact) error {
	s, p := x.s, x.m.program
	s.Parameters = make(map[string]any, len(p.Parameters)+len(given))
	for name, v := range given {
		s.Parameters[name] = normal(v)
	}
	sc := x.runScope()
	for i := range p.Parameters {
		in := &p.Parameters[i]
		v, ok := s.Parameters[in.Name]
		if !ok {
			var err error
			if v, ok, err = x.inputDefault(in, sc); err != nil {
				return fmt.Errorf("workflow parameter %q: %w", in.Name, err)
			}
			if !ok {
				if in.Optional {
					continue
				}
				return fmt.Errorf("workflow parameter %q has no value and no default", in.Name)
			}
		}
		if v, err := x.accept(in, v); err != nil {
			return fmt.Errorf("workflow parameter %q: %w", in.Name, err)
		} else {
			s.Parameters[in.Name] = v
		}
	}
	s.Artifacts = map[string][]program.Artifact{}
	maps.Copy(s.Artifacts, artifacts)
	for i := range p.Artifacts {
		in := &p.Artifacts[i]
		if _, ok := s.Artifacts[in.Name]; ok || in.Default == nil {
			continue
		}
		list, ok, err := x.artifacts(in.Default, sc)
		if err != nil {
			return fmt.Errorf("workflow artifact %q: %w", in.Name, err)
		}
		if ok {
			s.Artifacts[in.Name] = list
		}
	}
	return nil
}

func (x *step) enterRoot() {
	s := x.s
	s.Message = ""
	x.runLifecycle(string(RunningPhase))
	call := &x.m.program.Entry
	pl := x.plan(x.runScope(), call, site{From: fromEntry}, s.Run.Name, s.Run.Name)
	if pl.template != nil && pl.retry == nil {
		pl.retry = x.m.program.Retry
	}
	s.Root = x.commit(nil, &pl).ID
}

// rootDone goes on with the exit handlers.
func (x *step) rootDone(root *Node) {
	x.stopDaemons(x.s.own)
	status := x.outcome(root)
	x.runLifecycle(string(status))
	exit := x.m.program.OnExit
	if exit == nil || x.s.Shutdown == "Terminate" {
		x.maybeEndRun()
		return
	}
	sc := x.runScope()
	pl := x.plan(sc, exit, site{From: fromExit}, x.s.Run.Name+".onExit", x.s.Run.Name+".onExit")
	if pl.skip != "" { // a handler whose expression is false leaves nothing behind
		x.maybeEndRun()
		return
	}
	pl.hooked, pl.exit = true, true
	x.s.own.Calls++
	x.s.ExitRoot = x.commit(nil, &pl).ID
}

// outcome is what the root's phase means for the run.
func (x *step) outcome(root *Node) Phase {
	switch root.Phase {
	case SkippedPhase, OmittedPhase:
		return SucceededPhase
	case RunningPhase: // a daemon that is ready
		return SucceededPhase
	}
	return root.Phase
}

// exitDone is called when the exit handler or a call that watches the run is done.
func (x *step) exitDone() {
	x.s.own.Calls--
	x.maybeEndRun()
}

func (x *step) maybeEndRun() {
	root := x.s.Node(x.s.Root)
	if root == nil || root.Stage != StageDone || x.s.own.Calls > 0 || x.s.own.Open > 0 || x.s.Phase.Ended() {
		return
	}
	phase, message := x.outcome(root), root.Message
	if root.Kind == AbsentNode && phase == SucceededPhase {
		message = ""
	}
	if x.s.own.Stopping != "" && phase == SucceededPhase && x.s.own.Expired {
		phase = FailedPhase
	}
	if exit := x.s.Node(x.s.ExitRoot); exit != nil && exit.Phase.Bad() && !phase.Bad() {
		phase, message = exit.Phase, exit.Message
	}
	if phase.Bad() && x.s.own.Stopping != "" {
		message = x.s.own.Stopping
	}
	x.endRun(phase, message)
}

func (x *step) endRun(phase Phase, message string) {
	s := x.s
	s.Phase, s.Message, s.Finished = phase, message, x.now
	if !s.own.Deadline.IsZero() {
		x.emit(CancelTimer{Timer{Kind: DeadlineTimer}})
		s.own.Deadline = time.Time{}
	}
	if s.own.Locked {
		s.own.Locked = false
		x.emit(ReleaseLocks{Path: s.Run.Name})
	}
	s.own.Queue = nil
	s.touchRun()
}

// abandon ends the run with an error, whatever goes on.
func (x *step) abandon(message string) {
	if x.s.Phase.Ended() {
		return
	}
	x.shutdown(Shutdown{Terminate: true, Message: message})
	x.drain()
	x.endRun(ErrorPhase, message)
}

// runDeadline is the run's deadline as a duration, at most a billion seconds.
func runDeadline(p *program.Program) time.Duration {
	return time.Duration(min(p.Deadline, 1_000_000_000)) * time.Second
}
