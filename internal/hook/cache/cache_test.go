package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/hook/cache/sqlcache"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// bench is a cache with a clock that the test moves.
type bench struct {
	*testing.T
	entries *sqlcache.Entries
	now     time.Time
	mu      sync.Mutex
	woken   []string
	gone    map[string]bool // artifacts that do not exist any more, by URI
	broken  error
	runs    map[string]bool // workflows that a process runs, by UID
}

func newBench(t *testing.T) *bench {
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "cache.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context(), sqlcache.MigrationTable, sqlcache.Migrations()); err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, entries: sqlcache.New(db.Write, db.Read), now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), gone: map[string]bool{}}
}

// plugin makes the plugin anew, as after a restart.
func (b *bench) plugin(settings string) taskhook.Plugin {
	b.Helper()
	c := cache.New(cache.Config{
		Entries: b.entries, Flights: b.entries, Runs: func(uid string) bool { return b.runs[uid] },
		Fingerprint: func(r *v1alpha1.TaskReviewRequest) (string, error) {
			text, _ := r.Task.Inputs.Parameters["fingerprint"].(string)
			return text, nil
		},
		Exists: func(_ context.Context, _ string, a v1alpha1.Artifact) (bool, error) { return !b.gone[a.URI], b.broken },
		Wake: func(uid string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.woken = append(b.woken, uid)
		},
		Now: func() time.Time { return b.now },
	})
	p, err := c.FromSettings(json.RawMessage(settings))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func request(uid string, c *v1alpha1.Cache) *taskhook.Request {
	return &taskhook.Request{
		UID: uid, Hook: "cache", Point: v1alpha1.Pre, Scope: v1alpha1.ScopeTask,
		Workflow: v1alpha1.Workflow{Name: "flow", UID: "run-1", Namespace: "ml", Pipeline: "flow"},
		Task: v1alpha1.Task{
			ID: "1", Path: "flow.train", Name: "train", Template: "train", TemplateDigest: "sha256:t", Cache: c,
			Inputs: v1alpha1.Inputs{Parameters: map[string]any{"x": "1"}},
		},
	}
}

func byKey(key string) *v1alpha1.Cache {
	return &v1alpha1.Cache{Scheme: "key", Name: "my-cache", Key: key}
}

// pre asks, and gives the decision or "Pending".
func (b *bench) pre(p taskhook.Plugin, r *taskhook.Request) (string, *taskhook.Response) {
	b.Helper()
	response, err := taskhook.Answer(b.Context(), p, r)
	if err != nil {
		b.Fatal(err)
	}
	if problems := v1alpha1.CheckResponse(response, r.Point, r.UID, "response"); len(problems) > 0 {
		b.Fatal(problems)
	}
	if response.Pending != nil {
		return "Pending", response
	}
	return string(response.Decision), response
}

var outputs = v1alpha1.Outputs{
	Parameters: map[string]any{"acc": 0.5, "n": int64(9007199254740993), "text": "x"},
	Artifacts:  map[string][]v1alpha1.Artifact{"model": {{URI: "s3://b/model", Metadata: map[string]any{"rows": int64(3)}}}},
}

// post tells how the task of a Pre ended.
func (b *bench) post(p taskhook.Plugin, r *taskhook.Request, state json.RawMessage, phase string, reused bool) {
	b.Helper()
	after := *r
	after.UID, after.Point, after.State = r.UID+"-post", v1alpha1.Post, state
	after.Result = &v1alpha1.Result{Phase: phase, Reused: reused, Outputs: outputs}
	if decision, _ := b.pre(p, &after); decision != "Done" {
		b.Errorf("Post says %s", decision)
	}
}

// do runs a task whose Pre says Run, to success.
func (b *bench) do(p taskhook.Plugin, r *taskhook.Request) {
	b.Helper()
	decision, response := b.pre(p, r)
	if decision != "Run" {
		b.Fatalf("%s: %s, want Run", r.UID, decision)
	}
	b.post(p, r, response.State, "Succeeded", false)
}

func (b *bench) want(p taskhook.Plugin, r *taskhook.Request, want string) *taskhook.Response {
	b.Helper()
	decision, response := b.pre(p, r)
	if decision != want {
		b.Errorf("%s: %s (%s), want %s", r.UID, decision, response.Message, want)
	}
	return response
}

// What is in a graph may have the graph's key: if either waited for the other, neither would end.
func TestGraphsDoNotWait(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	graph := func(uid string) *taskhook.Request {
		r := request(uid, byKey("k"))
		r.Scope = v1alpha1.ScopeGraph
		return r
	}
	around := graph("1")
	state := b.want(p, around, "Run").State
	b.do(p, request("2", byKey("k")))
	b.post(p, around, state, "Succeeded", false)
	b.want(p, graph("3"), "Reuse")
}

func TestWorkIsReused(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	b.do(p, request("1", byKey("k")))
	got := b.want(b.plugin(""), request("2", byKey("k")), "Reuse")
	if diff := cmp.Diff(&outputs, got.Outputs); diff != "" {
		t.Error(diff)
	}
	if got.Message != "reused: flow.train of flow, 2026-01-31T12:00:00Z" {
		t.Errorf("message is %q", got.Message)
	}
	b.want(p, request("3", byKey("other")), "Run")
	elsewhere := request("4", byKey("k"))
	elsewhere.Task.Cache.Name = "another-cache"
	b.want(p, elsewhere, "Run")
	namespace := request("5", byKey("k"))
	namespace.Workflow.Namespace = "other"
	b.want(p, namespace, "Run")
	list, err := b.entries.List(t.Context(), sqlcache.Filter{Key: "k"})
	if err != nil || len(list) != 1 || list[0].Hits != 1 || !list[0].LastHit.Equal(b.now) {
		t.Errorf("entries: %+v, %v", list, err)
	}
}

func TestOnlySuccessIsKept(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	for _, phase := range []string{"Failed", "Error", "Skipped"} {
		r := request(phase, byKey("k"))
		response := b.want(p, r, "Run")
		b.post(p, r, response.State, phase, false)
	}
	// Outputs that another hook gave are not work of this key.
	r := request("reused", byKey("k"))
	response := b.want(p, r, "Run")
	b.post(p, r, response.State, "Succeeded", true)
	b.want(p, request("last", byKey("k")), "Run")
}

func TestAge(t *testing.T) {
	b := newBench(t)
	b.do(b.plugin(""), request("1", byKey("k")))
	b.now = b.now.Add(2 * time.Hour)
	aged := func(uid, age string) *taskhook.Request {
		c := byKey("k")
		c.MaxAge = age
		return request(uid, c)
	}
	b.want(b.plugin(""), aged("2", "3h"), "Reuse")
	b.want(b.plugin(""), aged("3", "10800"), "Reuse")
	b.want(b.plugin(""), aged("4", "1h"), "Run")
	b.want(b.plugin(`{"ttl":"90m"}`), aged("5", "3h"), "Run")
	b.want(b.plugin(`{"ttl":"150m"}`), request("6", byKey("k")), "Reuse")
}

func TestKeysThatMakeNoSense(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	for _, c := range []*v1alpha1.Cache{
		byKey(""), byKey("-x"), byKey("a b"), byKey("a/b"), {Scheme: "key", Key: "k", MaxAge: "old"}, {Scheme: "key", Key: "k", MaxAge: "-1s"}, {Scheme: "other"},
	} {
		b.want(p, request("1", c), "Fail")
	}
	b.want(p, request("2", nil), "Run")
}

func TestFingerprints(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	kfp := func(uid, pipeline, fingerprint string) *taskhook.Request {
		r := request(uid, &v1alpha1.Cache{Scheme: "kfp"})
		r.Workflow.Pipeline = pipeline
		r.Task.Inputs.Parameters["fingerprint"] = fingerprint
		return r
	}
	b.do(p, kfp("1", "a", "f"))
	b.want(p, kfp("2", "a", "f"), "Reuse")
	b.want(p, kfp("3", "b", "f"), "Run") // the scope is the pipeline
	b.want(p, kfp("4", "a", "g"), "Run")
	b.want(p, kfp("5", "a", ""), "Run") // a task that has none
}

func TestMissingArtifactsAreNoHit(t *testing.T) {
	b := newBench(t)
	b.do(b.plugin(""), request("1", byKey("k")))
	b.gone["s3://b/model"] = true
	b.want(b.plugin(`{"checkArtifacts":false}`), request("2", byKey("k")), "Reuse")
	b.broken = errors.New("the store is down")
	if _, err := b.plugin("").Pre(t.Context(), request("3", byKey("k"))); !errors.Is(err, b.broken) {
		t.Errorf("a store that cannot be asked: %v", err)
	}
	b.broken = nil
	b.want(b.plugin(""), request("4", byKey("k")), "Run")
	b.gone["s3://b/model"] = false
	b.want(b.plugin(""), request("5", byKey("k")), "Run") // the entry is gone for good
}

// The same work is done once at a time: others wait for it, and take its outputs.
func TestSameWorkAtOnce(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	first := request("1", byKey("k"))
	response := b.want(p, first, "Run")
	b.want(p, first, "Run") // the same review again
	waiting := b.want(p, request("2", byKey("k")), "Pending")
	if waiting.Message != "the same work is done by flow.train" {
		t.Errorf("message is %q", waiting.Message)
	}
	b.want(p, request("3", byKey("k")), "Pending")
	b.want(p, request("3", byKey("k")), "Pending")
	b.want(p, request("4", byKey("other")), "Run")
	b.post(p, first, response.State, "Succeeded", false)
	if diff := cmp.Diff([]string{"2", "3"}, b.woken); diff != "" {
		t.Error("woken:", diff)
	}
	b.want(p, request("2", byKey("k")), "Reuse")
	b.want(p, request("3", byKey("k")), "Reuse")
}

func TestWaitingForWorkThatFails(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	first, second := request("1", byKey("k")), request("2", byKey("k"))
	response := b.want(p, first, "Run")
	b.want(p, second, "Pending")
	b.want(p, request("3", byKey("k")), "Pending")
	b.post(p, first, response.State, "Failed", false)
	response = b.want(p, second, "Run") // its turn
	b.want(p, request("3", byKey("k")), "Pending")
	b.post(p, first, response.State, "Succeeded", false) // late and not its own: whose state it is counts
	b.post(p, second, response.State, "Succeeded", false)
	b.want(p, request("3", byKey("k")), "Reuse")
}

func TestWorkThatIsGivenUp(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	b.want(p, request("1", byKey("k")), "Run")
	b.want(p, request("2", byKey("k")), "Pending")
	b.want(p, request("3", byKey("k")), "Pending")
	forgetter, ok := p.(interface{ Forget(uid string) })
	if !ok {
		t.Fatal("the cache cannot forget")
	}
	forgetter.Forget("2") // cancelled while it waited
	forgetter.Forget("1") // cancelled before its task began
	if diff := cmp.Diff([]string{"3"}, b.woken); diff != "" {
		t.Error("woken:", diff)
	}
	b.want(p, request("3", byKey("k")), "Run")
	// And whoever never says anything is not waited for forever.
	b.want(p, request("4", byKey("k")), "Pending")
	b.now = b.now.Add(25 * time.Hour)
	b.want(p, request("4", byKey("k")), "Run")
	b.want(b.plugin(`{"deduplicate":false}`), request("5", byKey("k")), "Run")
}

// Two processes share the entries and nothing else: each plugin is one's.
func TestSameWorkInOtherProcesses(t *testing.T) {
	b := newBench(t)
	of := func(uid, run, key string) *taskhook.Request {
		r := request(uid, byKey(key))
		r.Workflow.UID = run
		return r
	}
	b.runs = map[string]bool{"run-1": true, "run-2": true}
	p1, p2 := b.plugin(""), b.plugin("")
	first := b.want(p1, of("1", "run-1", "k"), "Run")
	b.want(p1, of("1", "run-1", "k"), "Run")
	waiting := b.want(p2, of("2", "run-2", "k"), "Pending")
	if waiting.Message != "the same work is done by flow.train in another process" {
		t.Errorf("message is %q", waiting.Message)
	}
	b.want(p2, of("3", "run-2", "k"), "Pending")
	b.want(p2, of("4", "run-2", "other"), "Run")
	b.post(p1, of("1", "run-1", "k"), first.State, "Failed", false)
	// One of those who waited does it, the others go on waiting, in its process too.
	second := b.want(p2, of("2", "run-2", "k"), "Run")
	b.want(p2, of("3", "run-2", "k"), "Pending")
	b.want(p1, of("5", "run-1", "k"), "Pending")
	b.want(p1, of("6", "run-1", "k"), "Pending")
	b.post(p2, of("2", "run-2", "k"), second.State, "Succeeded", false)
	b.woken = nil
	b.want(p1, of("5", "run-1", "k"), "Reuse")
	if diff := cmp.Diff([]string{"6"}, b.woken); diff != "" {
		t.Error("woken by the one that waited for another process:", diff)
	}
	b.want(p1, of("6", "run-1", "k"), "Reuse")

	// A workflow whose process is gone is not waited for, nor one that goes on forever.
	b.want(p1, of("7", "run-1", "z"), "Run")
	b.want(p2, of("8", "run-2", "z"), "Pending")
	b.runs["run-1"] = false
	b.want(p2, of("8", "run-2", "z"), "Run")
	b.runs["run-1"] = true
	b.want(b.plugin(""), of("7", "run-1", "z"), "Pending") // resumed, it has lost it
	b.now = b.now.Add(25 * time.Hour)
	b.want(b.plugin(""), of("7", "run-1", "z"), "Run")

	// What is given up is free at once.
	p1.(interface{ Forget(uid string) }).Forget("7") // another process took it over meanwhile
	b.want(p2, of("9", "run-2", "w"), "Run")
	b.want(p1, of("10", "run-1", "w"), "Pending")
	p2.(interface{ Forget(uid string) }).Forget("9")
	b.want(p1, of("10", "run-1", "w"), "Run")
}

func TestContentKeys(t *testing.T) {
	b := newBench(t)
	p := b.plugin(`{"mode":"content"}`)
	n := 0
	task := func(change func(r *taskhook.Request)) *taskhook.Request {
		n++
		r := request("u"+string(rune('a'+n)), nil)
		r.Task.Inputs.Artifacts = map[string][]v1alpha1.Artifact{"data": {{
			URI: "s3://b/one", Digest: "sha256:d", Store: json.RawMessage(`{"s3":{"key":"one","bucket":"b"}}`),
		}}}
		change(r)
		return r
	}
	b.do(p, task(func(*taskhook.Request) {}))
	for name, test := range map[string]struct {
		change func(r *taskhook.Request)
		want   string
	}{
		"nothing else": {func(*taskhook.Request) {}, "Reuse"},
		"other names and places": {func(r *taskhook.Request) {
			r.Task.Name, r.Task.Path, r.Workflow.Name, r.Task.Attempt, r.Workflow.Pipeline = "b", "x.b", "x", 3, "p"
			r.Task.Labels = map[string]string{"a": "b"}
		}, "Reuse"},
		"the same bytes elsewhere": {func(r *taskhook.Request) { r.Task.Inputs.Artifacts["data"][0].URI = "s3://b/two" }, "Reuse"},
		"other bytes":              {func(r *taskhook.Request) { r.Task.Inputs.Artifacts["data"][0].Digest = "sha256:e" }, "Run"},
		"bytes that nobody knows":  {func(r *taskhook.Request) { r.Task.Inputs.Artifacts["data"][0].Digest = "" }, "Run"},
		"another parameter":        {func(r *taskhook.Request) { r.Task.Inputs.Parameters["x"] = "2" }, "Run"},
		"another type":             {func(r *taskhook.Request) { r.Task.Inputs.Parameters["x"] = int64(1) }, "Run"},
		"one more parameter":       {func(r *taskhook.Request) { r.Task.Inputs.Parameters["y"] = "" }, "Run"},
		"another template":         {func(r *taskhook.Request) { r.Task.TemplateDigest = "sha256:u" }, "Run"},
		"another namespace":        {func(r *taskhook.Request) { r.Workflow.Namespace = "x" }, "Run"},
	} {
		if decision, _ := b.pre(p, task(test.change)); decision != test.want {
			t.Errorf("%s: %s, want %s", name, decision, test.want)
		}
	}
	for name, change := range map[string]func(r *taskhook.Request){
		"a suspend":  func(r *taskhook.Request) { r.Task.TemplateSpec = json.RawMessage(`{"name":"w","suspend":{}}`) },
		"a graph":    func(r *taskhook.Request) { r.Scope = v1alpha1.ScopeGraph },
		"no content": func(r *taskhook.Request) { r.Task.TemplateDigest = "" },
	} {
		decision, response := b.pre(p, task(change))
		if decision != "Run" || response.State != nil {
			t.Errorf("%s has a part in the cache: %s %s", name, decision, response.State)
		}
	}
}

func TestSettings(t *testing.T) {
	c := cache.New(cache.Config{})
	for text, want := range map[string]string{
		`{"mode":"always"}`: "mode: must be declared or content", `{"ttl":"old"}`: "ttl: must be a duration", `{"pollSeconds":-1}`: "pollSeconds",
		`{"mod":"content"}`: "unknown field", `{} x`: "after its end", `[]`: "cannot unmarshal",
	} {
		_, err := c.FromSettings(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestClear(t *testing.T) {
	b := newBench(t)
	p := b.plugin("")
	for _, key := range []string{"a1", "a2", "b1"} {
		b.do(p, request(key, byKey(key)))
		b.now = b.now.Add(time.Hour)
	}
	start := b.now.Add(-3 * time.Hour)
	for _, step := range []struct {
		filter sqlcache.Filter
		gone   int64
	}{
		{sqlcache.Filter{Key: "%"}, 0},
		{sqlcache.Filter{WorkflowUID: "none"}, 0},
		{sqlcache.Filter{Before: start.Add(time.Minute)}, 1},
		{sqlcache.Filter{Key: "a"}, 1},
		{sqlcache.Filter{}, 1},
	} {
		n, err := b.entries.Clear(t.Context(), step.filter)
		if err != nil || n != step.gone {
			t.Errorf("%+v: %d, %v, want %d", step.filter, n, err, step.gone)
		}
	}
}
