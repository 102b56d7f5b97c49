package hook

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes what a dispatcher has to tell; runner.Sink is one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Config is what a dispatcher works with. Registry and Sink are needed; the rest has defaults.
type Config struct {
	Registry *Registry
	Sink     Sink
	// Builtins are the plugins that hooks can name under spec.builtin.
	Builtins map[string]Builtin
	// Secrets reads the shared secrets of hooks, at every use; where it is nil, hooks that sign fail.
	Secrets Secrets
	// Tokens makes bearer tokens; where it is nil, hooks that want one fail.
	Tokens Tokens
	// Callback, when set, lets plugins end a pending review early.
	Callback *Callback
	// Redact gives the values of a run that must not leave: texts in reviews that contain them are made unreadable.
	Redact func(run engine.Run) []string
	// Breaker says when a failing hook is left alone for a while.
	Breaker Breaker
	// Seed makes the jitter of waits repeatable.
	Seed uint64
	// UserAgent names us to plugins; "sluice" by default.
	UserAgent string
	// Dial replaces how connections are made, for policies about who may be reached. By default link-local
	// addresses are refused (a cloud's metadata service is one) and all others allowed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger takes what no workflow is told; discarded by default.
	Logger *slog.Logger
}

// Dispatcher puts reviews to hooks; it implements runner.Hooks. It keeps nothing that matters: after a restart the engine
// asks again, with the same UIDs and times.
type Dispatcher struct {
	cfg       Config
	ctx       context.Context
	stop      context.CancelCauseFunc
	work      sync.WaitGroup
	callbacks *callbacks // nil without Config.Callback

	mu      sync.Mutex
	closed  bool
	reviews map[string]*review // by UID: those that are not settled
	lanes   map[string]*lane   // by namespace and name of the hook
	plugins map[string]*plugin
	clients map[string]*client
	notices sync.WaitGroup // reviews that nothing waits for, but Close
}

// New makes a dispatcher. Close ends it.
func New(cfg Config) (*Dispatcher, error) {
	switch {
	case cfg.Registry == nil:
		return nil, errors.New("hook dispatcher: no registry")
	case cfg.Sink == nil:
		return nil, errors.New("hook dispatcher: no sink")
	}
	cfg.Breaker = cfg.Breaker.withDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "sluice"
	}
	if cfg.Dial == nil {
		cfg.Dial = DialPublic
	}
	d := &Dispatcher{
		cfg:     cfg,
		reviews: map[string]*review{},
		lanes:   map[string]*lane{},
		plugins: map[string]*plugin{},
		clients: map[string]*client{},
	}
	d.ctx, d.stop = context.WithCancelCause(context.Background())
	for _, h := range cfg.Registry.Hooks() {
		if h.Spec.Builtin == nil {
			continue
		}
		if _, err := d.plugin(h); err != nil {
			d.stop(err)
			return nil, err
		}
	}
	if cfg.Callback != nil {
		if err := d.startCallbacks(); err != nil {
			d.stop(err)
			return nil, err
		}
	}
	return d, nil
}

// Select gives the hooks whose selector matches a workflow's labels, as the engine needs them, in Pre order.
func (d *Dispatcher) Select(labels map[string]string) ([]engine.Hook, error) {
	return d.cfg.Registry.Select("", labels)
}

// SelectFor is Select for a workflow of a namespace: hooks of other namespaces are not there for it.
func (d *Dispatcher) SelectFor(namespace string, labels map[string]string) ([]engine.Hook, error) {
	return d.cfg.Registry.Select(namespace, labels)
}

// Ask puts a review and returns at once. One Answered event follows unless it is cancelled or cmd.Notify is set, and Noted
// events on the way. To ask again while it is under way changes nothing. The context does not bound the wait.
func (d *Dispatcher) Ask(_ context.Context, run engine.Run, p *program.Program, cmd engine.AskHook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if old, asked := d.reviews[cmd.UID]; asked && !old.over() && old.cmd.Asked.Equal(cmd.Asked) {
		return
	}
	r := d.newReview(run, p, cmd)
	d.reviews[cmd.UID] = r
	if d.callbacks != nil {
		d.callbacks.opened(cmd.UID)
	}
	if cmd.Notify {
		d.notices.Add(1)
	}
	l := d.lane(run.Namespace, cmd.Hook)
	r.lane = l
	l.add(r)
}

// Cancel forgets a review: it tells nothing any more. A call that is under way is ended.
func (d *Dispatcher) Cancel(_ engine.Run, cmd engine.CancelHook) {
	d.mu.Lock()
	r := d.reviews[cmd.UID]
	d.mu.Unlock()
	if r != nil {
		r.lane.cancel(r)
	}
}

// Wake asks a pending review again now. Built-in plugins use it where others use the callback.
func (d *Dispatcher) Wake(uid string) {
	d.mu.Lock()
	r := d.reviews[uid]
	d.mu.Unlock()
	if r != nil {
		r.lane.hurry(r)
	}
}

// Close ends the dispatcher: reviews that nothing waits for are still sent, as long as ctx allows; all others are
// dropped where they are, to be asked again after a restart.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()

	sent := make(chan struct{})
	go func() {
		d.notices.Wait()
		close(sent)
	}()
	var err error
	select {
	case <-sent:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	d.stop(errClosed)
	if d.callbacks != nil {
		d.callbacks.close()
	}
	d.work.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.reviews {
		d.finishNotice(r)
	}
	for _, c := range d.clients {
		c.close()
	}
	return err
}

var errClosed = errors.New("the hook dispatcher is closed")

// CallbackHandler serves callbacks, for a server that mounts it instead of a listener of its own; nil where callbacks are
// not configured.
func (d *Dispatcher) CallbackHandler() http.Handler {
	if d.callbacks == nil {
		return nil
	}
	return d.callbacks
}

// lane gives the lane of a hook, and starts it where it is new. The caller holds d.mu.
func (d *Dispatcher) lane(namespace, name string) *lane {
	key := "/" + name
	if h, ok := d.cfg.Registry.Lookup(namespace, name); ok && !h.Cluster() {
		key = h.Metadata.Namespace + key
	}
	if l, ok := d.lanes[key]; ok {
		return l
	}
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, key)
	l := &lane{
		d:         d,
		namespace: namespace,
		name:      name,
		random:    rand.New(rand.NewPCG(d.cfg.Seed, sum.Sum64())),
		circle:    circuit{settings: d.cfg.Breaker},
		kick:      make(chan struct{}, 1),
		known:     map[string]bool{},
	}
	d.lanes[key] = l
	d.work.Go(l.run)
	return l
}

// settled takes reviews out that have come to their end, and tells what came of them. It is called without locks.
func (d *Dispatcher) settled(r *review, answer *engine.Answered) {
	d.mu.Lock()
	if d.reviews[r.uid] == r {
		delete(d.reviews, r.uid)
		if d.callbacks != nil {
			d.callbacks.settled(r.uid)
		}
	}
	closed := d.ctx.Err() != nil
	d.finishNotice(r)
	d.mu.Unlock()
	if answer != nil && !r.cmd.Notify && !closed {
		d.cfg.Sink.Tell(r.run.UID, engine.Event{Time: time.Now(), Answered: answer})
	}
}

// finishNotice counts a notice as done, once. The caller holds d.mu.
func (d *Dispatcher) finishNotice(r *review) {
	if r.cmd.Notify && !r.counted {
		r.counted = true
		d.notices.Done()
	}
}
