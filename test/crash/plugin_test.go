//go:build whole

package crash

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// plugin counts the reviews that it was sent. It lives in the test, so it survives every kill.
type plugin struct {
	server *httptest.Server

	mu sync.Mutex
	// seen has the points that were answered, by path of the attempt, in order; a review that comes again counts once.
	seen  map[string][]string
	known map[string]bool
	again int
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{seen: map[string][]string{}, known: map[string]bool{}}
	p.server = httptest.NewServer(taskhook.Handler(p, taskhook.Options{}))
	t.Cleanup(p.server.Close)
	return p
}

func (p *plugin) document() string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: counter}
spec:
  points: [Pre, Post]
  scope: [Task]
  http: {url: %q}
`, p.server.URL)
}

func (p *plugin) note(r *taskhook.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[r.UID] {
		p.again++
		return
	}
	p.known[r.UID] = true
	p.seen[r.Task.Path] = append(p.seen[r.Task.Path], string(r.Point))
}

// Pre implements taskhook.Plugin.
func (p *plugin) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	p.note(r)
	return taskhook.Run(map[string]any{"seen": r.Task.Name}), nil
}

// Post implements taskhook.Plugin.
func (p *plugin) Post(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	p.note(r)
	return taskhook.Done(), nil
}

// check asserts that every task was asked about before and after, in this order, under one uid each.
func (p *plugin) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("%d reviews came again after a kill", p.again)
	if len(p.seen) != tasks+1 {
		t.Errorf("the plugin was asked about %d tasks, want %d", len(p.seen), tasks+1)
	}
	for path, points := range p.seen {
		if !slices.Equal(points, []string{"Pre", "Post"}) {
			t.Errorf("%s: was asked about at %v, want Pre, then Post", path, points)
		}
	}
}
