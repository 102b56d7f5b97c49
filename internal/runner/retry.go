package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluice-ml/sluice/internal/engine"
)

// Apply puts events into the journal of a run that is open but not running yet; what follows from them is outstanding
// when Run begins.
func (a *Active) Apply(ctx context.Context, ask func(*engine.State) ([]engine.Event, error)) error {
	reply := make(chan error, 1)
	if err := a.handle(ctx, []item{{ask: ask, reply: reply}}, func([]engine.Command) {}); err != nil {
		return err
	}
	return <-reply
}

// Retry makes an ended run one that Run goes on with: see [engine.RetryRun]. The backend first forgets the attempts
// that are to run again: a crash in between leaves a failed run as failed as it was.
func (a *Active) Retry(ctx context.Context, ask func(*engine.State) (engine.RetryRun, error)) error {
	retry, err := ask(a.state)
	if err != nil {
		return err
	}
	again, err := a.rerun(retry)
	if err != nil {
		return err
	}
	if forgetter, ok := a.runner.Backend.(Forgetter); ok {
		for _, path := range again {
			if err := forgetter.Forget(ctx, a.state.Run, path); err != nil {
				return fmt.Errorf("retry %s: forget %s: %w", a.state.Run.Name, path, err)
			}
		}
	}
	return a.Apply(ctx, func(*engine.State) ([]engine.Event, error) {
		return []engine.Event{{RetryRun: &retry}}, nil
	})
}

// rerun tries a retry on a copy of the state and gives the attempts that had ended and do not count any more after it.
func (a *Active) rerun(retry engine.RetryRun) ([]string, error) {
	data, err := json.Marshal(a.state)
	if err != nil {
		return nil, fmt.Errorf("copy the state: %w", err)
	}
	trial, err := a.job.Machine.Load(data)
	if err != nil {
		return nil, fmt.Errorf("copy the state: %w", err)
	}
	if _, err := a.job.Machine.Step(trial, engine.Event{Time: a.runner.Now().UTC(), RetryRun: &retry}); err != nil {
		return nil, err
	}
	var again []string
	for n := range a.state.Nodes() {
		if n.Kind != engine.Leaf || !n.Phase.Ended() || n.Dropped {
			continue
		}
		if t := trial.Node(n.ID); t == nil || t.Dropped || !t.Phase.Ended() {
			again = append(again, identity(n))
		}
	}
	return again, nil
}

// Waits says whether nothing is under way in a run that has been opened, so that only a person can make it go on.
func (a *Active) Waits() bool {
	open := &Active{open: map[any]bool{}}
	for _, c := range a.job.Machine.Outstanding(a.state) {
		open.begin(c)
	}
	return open.waiting() && !a.state.Phase.Ended()
}
