package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/filelock"
	"github.com/sluice-ml/sluice/internal/submission"
)

// execution is a run in the foreground of this process.
type execution struct {
	a        *app
	run      store.Run
	manifest *submission.Manifest
	options  options
	registry *hook.Registry
	view     viewFlags
	quiet    bool // says nothing but errors
	owner    *filelock.Lock

	active *runner.Active
	live   *liveTree
	parts  *parts
}

// own makes this process the owner of a run. The error says who owns it.
func (a *app) own(uid string) (*filelock.Lock, error) {
	host, _ := os.Hostname()
	return filelock.Try(a.ownerFile(uid), fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, time.Now().Format(time.DateTime)))
}

func (a *app) runFolder(uid string) string { return a.folder("runs", uid) }
func (a *app) ownerFile(uid string) string { return a.folder("runs", uid, "owner.lock") }

// adopt loads a run of the store and makes this process its owner.
func (a *app) adopt(ctx context.Context, uid string, view viewFlags) (*execution, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	run, err := st.Get(ctx, uid)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(a.runFolder(uid), 0o700); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	owner, err := a.own(uid)
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, &ownedError{run: run.Name, by: held.Holder}
	}
	if err != nil {
		return nil, err
	}
	e := &execution{a: a, run: run, view: view, owner: owner}
	if err := e.reload(); err != nil {
		return nil, errors.Join(err, owner.Release())
	}
	return e, nil
}

// reload compiles a stored submission again.
func (e *execution) reload() error {
	var err error
	if e.options, err = storedOptions(e.run); err != nil {
		return err
	}
	if e.manifest, err = e.a.load(e.run.Submission, e.options, ""); err != nil {
		return fmt.Errorf("run %s cannot be loaded again: %w", e.run.Name, err)
	}
	e.registry, err = e.a.registry(e.run.Submission.Hooks)
	return err
}

func storedOptions(run store.Run) (options, error) {
	var o options
	if len(run.Submission.Args) == 0 {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader(run.Submission.Args))
	d.UseNumber() // whole numbers stay exact
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("run %s: its options cannot be read: %w", run.Name, err)
	}
	for k, v := range o.Parameters {
		o.Parameters[k] = submission.Plain(v)
	}
	submission.ParametersFromJSON(o.Parameters)
	return o, nil
}

// ownedError says that another process runs a run.
type ownedError struct{ run, by string }

func (o *ownedError) Error() string { return fmt.Sprintf("run %s is being run by %s", o.run, o.by) }

// execute goes on with the run until its end; before may put events into its journal first. It prints what is asked
// for and gives the error that makes the exit code.
func (e *execution) execute(ctx context.Context, before func(context.Context, *runner.Active) error) (err error) {
	defer func() { err = errors.Join(err, e.owner.Release()) }()
	st, err := e.a.openStore(ctx)
	if err != nil {
		return err
	}
	machine, err := e.a.machine(e.manifest)
	if err != nil {
		return err
	}
	if e.parts, err = e.a.connect(e, st); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.parts.close()) }()
	rec := &recorder{ctx: context.WithoutCancel(ctx), store: st, log: e.a.log, model: newModel()}
	job := runner.Job{
		UID: e.run.UID, Program: e.manifest.Program, Machine: machine, StopWhenWaiting: e.view.exitWhenSuspended,
		Observers: []runner.Observer{rec},
	}
	showing, done := e.show()
	job.Observers = append(job.Observers, showing...)
	defer done()
	if e.active, err = e.parts.runner.Open(ctx, job); err != nil {
		return err
	}
	if before != nil {
		if err := before(ctx, e.active); err != nil {
			e.active.Close()
			return err
		}
	}
	control, err := e.serveControl()
	if err != nil {
		e.a.log.Warn("other terminals cannot steer this run", "error", err)
	}
	stopSignals := e.obeySignals()
	end, err := e.active.Run(ctx)
	stopSignals()
	if control != nil {
		control.close()
	}
	done()
	rec.end(err != nil || end == runner.Interrupted)
	return e.finish(end, err)
}

// obeySignals has Ctrl-C stop the tasks: gently, then at once. A third ends the program as usual.
func (e *execution) obeySignals() (stop func()) {
	signals, end := e.a.Interrupts()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case <-signals:
			}
			e.active.Interrupt(n > 0)
			if n > 0 {
				end()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		end()
	}
}

// finish prints the end of a run and gives the error for its exit code.
func (e *execution) finish(end runner.End, err error) error {
	a, s := e.a, e.active.State()
	name := e.run.Name
	if e.quiet {
		if err == nil && s.Phase.Bad() {
			err = failure{errReported}
		}
		return err
	}
	if perr := e.print(s, end); perr != nil {
		return errors.Join(err, perr)
	}
	hint := func(format string, args ...any) { fmt.Fprintf(a.Stderr, format+"\n", args...) }
	switch {
	case err != nil:
		hint("%s nothing is lost; go on with:  sluice resume %s", a.paint(yellow, "interrupted:"), name)
		return err
	case end == runner.Interrupted:
		hint("%s go on with:  sluice resume %s", a.paint(yellow, "interrupted:"), name)
		return failure{errReported}
	case end == runner.Waiting:
		hint("%s go on with:  sluice resume %s", a.paint(yellow, "suspended:"), name)
		return nil
	case s.Phase.Bad():
		hint("%s %s", a.paint(red, "failed:"), firstLine(failureText(s)))
		hint("logs:   sluice logs %s", name)
		hint("retry:  sluice retry %s", name)
		return failure{errReported}
	}
	return nil
}

// print writes the run in the form that was asked for.
func (e *execution) print(s *engine.State, end runner.End) error {
	a := e.a
	switch e.view.output {
	case "json", "yaml":
		object, err := e.manifest.Project(s)
		if err != nil {
			return err
		}
		return a.printObject(e.view.output, object)
	case "name":
		_, err := fmt.Fprintln(a.Stdout, e.run.Name)
		return err
	}
	note := ""
	switch {
	case end == runner.Waiting:
		note = "waiting for a person"
	case end == runner.Interrupted:
		note = "interrupted"
	}
	width := 0
	if w, _, ok := terminalSize(a.Stdout); ok {
		width = w
	}
	return writeRun(a.Stdout, s, note, a.stdoutColour(), width, e.view.output == "wide", time.Now())
}

// show starts the views of a run; done ends them, once.
func (e *execution) show() (observers []runner.Observer, done func()) {
	a := e.a
	var ends []func()
	live := !e.view.noProgress && (e.view.watch || isTerminal(a.Stderr))
	switch {
	case live:
		e.live = newLiveTree(a.Stderr, a.colour)
		back := a.logs.redirect(e.live)
		ends = append(ends, e.live.close, back)
		observers = append(observers, e.live)
	case !e.view.noProgress:
		lines := a.newProgressLines(a.logs)
		observers = append(observers, lines)
		ends = append(ends, lines.close)
	}
	if e.view.showLogs {
		w := a.Stderr
		if live {
			w = e.live
		} else if e.view.output == "" {
			w = a.Stdout
		}
		f := a.newLogFollower(w, e.run.UID, logOptions{prefix: true, colour: a.colour})
		observers = append(observers, f)
		ends = append(ends, f.close)
	}
	return observers, func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
		ends = nil
	}
}
