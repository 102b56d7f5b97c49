package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/client"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// reportTime is what is kept of [spec.HandIn] for the report itself.
const reportTime = 2 * time.Second

// errStopped says that a transfer was given up because the container is to end.
var errStopped = errors.New("the task was stopped")

// connect makes the client of the task endpoint, where the task has one.
func (p *pod) connect() error {
	if p.spec.Endpoint == "" {
		return nil
	}
	var err error
	p.endpoint, err = client.New(client.Config{Base: p.spec.Endpoint, CA: p.spec.CA, TokenFile: p.places.TokenFile})
	return err
}

// ends says whether the container is to end, and when it must be done.
type ends struct {
	mu    sync.Mutex
	at    time.Time // when it was told; zero is never
	early bool      // before its command had begun
}

// stopped takes note that the container was told to end, the first time.
func (e *ends) stopped() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() {
		e.at = time.Now()
	}
}

func (e *ends) since() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

// stoppedEarly says that the container was told to end before its command began.
func (p *pod) stoppedEarly() bool { return p != nil && p.ends.early }

// fetch brings an input artifact to its path. It gives up as soon as the container is to end.
func (p *pod) fetch(input int, to string) error {
	i := slices.IndexFunc(p.spec.Fetch, func(t spec.Transfer) bool { return t.Input == input })
	if i < 0 || p.endpoint == nil {
		return errors.New("it is not said where it comes from")
	}
	ctx, stop := p.watch(func() time.Duration { return 0 })
	defer stop()
	err := p.endpoint.Fetch(ctx, p.spec.Fetch[i], to)
	if err != nil && !p.ends.since().IsZero() {
		p.ends.early = true
	}
	return err
}

// save stores what a task left at a path. file is the name at the top of an archive, where it is not the declared one.
func (p *pod) save(name, uri, file, from string) (spec.Saved, error) {
	resolved, err := resolve(from)
	if err != nil {
		return spec.Saved{}, err
	}
	i := slices.IndexFunc(p.spec.Save, func(t spec.Transfer) bool { return t.Name == name })
	if i < 0 || p.endpoint == nil {
		return spec.Saved{}, fmt.Errorf("%s is there, but nothing says where it is to be stored: configure an artifact repository", from)
	}
	t := p.spec.Save[i]
	if file != "" {
		t.File = file
	}
	ctx, stop := p.watch(p.handInTime)
	defer stop()
	return p.endpoint.Save(ctx, t, uri, resolved)
}

// saveReported stores an artifact as its component describes it; nothing is stored where it has left nothing.
func (p *pod) saveReported(name string, r program.Artifact, from string) (spec.Saved, error) {
	if from == "" {
		return spec.Saved{}, nil
	}
	file := name
	if base := path.Base(r.CustomPath); base != "." && base != "/" {
		file = base
	}
	saved, err := p.save(name, r.URI, file, from)
	if errors.Is(err, fs.ErrNotExist) {
		return spec.Saved{}, nil
	}
	return saved, err
}

// handIn gives the endpoint a result.
func (p *pod) handIn(data []byte) error {
	ctx, stop := p.watch(p.handInTime)
	defer stop()
	return p.endpoint.PutResult(ctx, data)
}

// handInTime is how long what is done after the command may take once the container was told to end.
func (p *pod) handInTime() time.Duration {
	grace := p.spec.Task.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	return grace + spec.HandIn - reportTime
}

// watch gives a context for something that is done while no command runs. Once the container is told to end, or was, the
// context has so long.
func (p *pod) watch(left func() time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		timer.Stop()
		if at := p.ends.since(); !at.IsZero() {
			timer.Reset(left() - time.Since(at))
		}
		for {
			select {
			case s := <-p.signals:
				if slices.Contains(endingSignals(), s) {
					p.ends.stopped()
					timer.Reset(left() - time.Since(p.ends.since()))
				}
			case <-timer.C:
				cancel(errStopped)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}
