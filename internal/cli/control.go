package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store/filelock"
)

// order is what another terminal asks of a run, as one line of JSON on the run's socket.
type order struct {
	// Do is stop, terminate, suspend or resume.
	Do string `json:"do"`
	// Select limits it to nodes, as --node-field-selector does.
	Select string `json:"select,omitempty"`
	// Message says why; Outputs and Phase are for resume.
	Message string         `json:"message,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
	Phase   engine.Phase   `json:"phase,omitempty"`
}

// reply is the answer to an order.
type reply struct {
	Error string `json:"error,omitempty"`
	// Done says what was done, for people.
	Done string `json:"done,omitempty"`
}

// events turns an order into events, for the state as it is.
func (o order) events(s *engine.State) ([]engine.Event, string, error) {
	if s.Phase.Ended() {
		return nil, "", fmt.Errorf("run %s has ended: %s", s.Run.Name, s.Phase)
	}
	nodes, err := selectNodes(s, o.Select)
	if err != nil {
		return nil, "", err
	}
	var ids []engine.NodeID
	for _, n := range nodes {
		if !n.Phase.Ended() {
			ids = append(ids, n.ID)
		}
	}
	if o.Select != "" && len(ids) == 0 {
		return nil, "", fmt.Errorf("no node that goes on matches %q", o.Select)
	}
	switch o.Do {
	case "stop", "terminate":
		done := o.Do + " asked for"
		if len(ids) > 0 {
			done = fmt.Sprintf("%s asked for %d nodes", o.Do, len(ids))
		}
		return []engine.Event{{Shutdown: &engine.Shutdown{Terminate: o.Do == "terminate", Message: o.Message, Nodes: ids}}}, done, nil
	case "suspend":
		return []engine.Event{{Suspend: &engine.Suspend{}}}, "suspended", nil
	case "resume":
		if waiting := suspended(s, ids); len(waiting) == 0 && !s.Suspended {
			return nil, "", fmt.Errorf("nothing in run %s waits for a person", s.Run.Name)
		}
		return []engine.Event{{Resume: &engine.Resume{Nodes: ids, Outputs: o.Outputs, Message: o.Message, Phase: o.Phase}}}, "resumed", nil
	}
	return nil, "", fmt.Errorf("%q is no order", o.Do)
}

// suspended gives the nodes that wait for a person: of ids, or of all.
func suspended(s *engine.State, ids []engine.NodeID) []*engine.Node {
	var out []*engine.Node
	only := map[engine.NodeID]bool{}
	for _, id := range ids {
		only[id] = true
	}
	for n := range s.Nodes() {
		t := n.Template()
		if t != nil && t.Suspend != nil && n.Kind == engine.Leaf && !n.Phase.Ended() && (len(ids) == 0 || only[n.ID]) {
			out = append(out, n)
		}
	}
	return out
}

// control serves a run's socket.
type control struct {
	l    net.Listener
	done sync.WaitGroup
	info string
}

// serveControl listens for orders on a socket in the run's folder.
func (e *execution) serveControl() (*control, error) {
	folder := e.a.runFolder(e.run.UID)
	path := filepath.Join(folder, "control.sock")
	if len(path) > maxSocketPath { // the kernel's limit; then it lies in the folder for temporary files
		path = filepath.Join(os.TempDir(), "sluice-"+e.run.UID+".sock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	c := &control{l: l, info: filepath.Join(folder, "control")}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(c.info, []byte(path+"\n"), 0o600)); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	c.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.done.Go(func() { answer(conn, e.active) })
		}
	})
	return c, nil
}

// maxSocketPath is what fits into a socket's address on every system.
const maxSocketPath = 100

func (c *control) close() {
	_ = c.l.Close() // removes the socket
	c.done.Wait()
	_ = os.Remove(c.info)
}

// orderTime bounds how long an order may take.
const orderTime = 10 * time.Second

func answer(conn net.Conn, active *runner.Active) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(orderTime))
	var o order
	var r reply
	if err := json.NewDecoder(conn).Decode(&o); err != nil {
		r.Error = "not an order: " + err.Error()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), orderTime/2)
		defer cancel()
		err := active.Ask(ctx, func(s *engine.State) (events []engine.Event, err error) {
			events, r.Done, err = o.events(s)
			return events, err
		})
		if err != nil {
			r.Error = err.Error()
		}
	}
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return // who asked has gone
	}
}

// errNotRunning says that no process runs a run.
var errNotRunning = errors.New("no process runs it")

// send gives an order to the process that runs a run. It is errNotRunning where there is none.
func (a *app) send(ctx context.Context, uid string, o order) (string, error) {
	if _, owned := filelock.Holder(a.ownerFile(uid)); !owned {
		return "", errNotRunning
	}
	var conn net.Conn
	var err error
	// The owner may be just starting, or just ending.
	for range 50 {
		var path []byte
		if path, err = os.ReadFile(filepath.Join(a.runFolder(uid), "control")); err == nil {
			if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimSpace(string(path))); err == nil {
				break
			}
		}
		if _, owned := filelock.Holder(a.ownerFile(uid)); !owned {
			return "", errNotRunning
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err != nil {
		return "", fmt.Errorf("the process that runs it does not listen: %w", err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(2 * orderTime))
	var r reply
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return "", fmt.Errorf("send the order: %w", err)
	}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return "", fmt.Errorf("the process that runs it did not answer: %w", err)
	}
	if r.Error != "" {
		return "", errors.New(r.Error)
	}
	return r.Done, nil
}
