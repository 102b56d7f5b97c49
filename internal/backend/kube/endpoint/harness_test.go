package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/artifact/artifacttest"
	"github.com/sluice-ml/sluice/internal/backend/kube/endpoint"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/client"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
	"github.com/sluice-ml/sluice/internal/program"
)

const placesEnv = "SLUICE_TEST_PLACES"

// The test program is the executor when it is called so.
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && os.Args[1] == "executor" {
		folder := os.Getenv(placesEnv)
		os.Exit(executor.Main(os.Args[2:], os.Stderr, executor.Host{
			Environ: os.Environ(), Parse: kfpoutput.ParseExecutorOutput,
			Places: executor.Places{Folder: folder, TerminationLog: filepath.Join(folder, "termination-log"), TokenFile: filepath.Join(folder, "token")},
		}))
	}
	os.Exit(m.Run())
}

// reviewer knows tokens: that of a pod is its UID.
type reviewer map[string]endpoint.Pod

func (r reviewer) Review(_ context.Context, token string) (endpoint.Pod, error) {
	if token == "ask later" {
		return endpoint.Pod{}, errors.New("connection refused")
	}
	pod, ok := r[token]
	if !ok {
		return pod, endpoint.ErrDenied
	}
	return pod, nil
}

// attempts are by the UID of their pod.
type attempts struct {
	mu    sync.Mutex
	byUID map[string]endpoint.Attempt
	err   error // given once
}

func (a *attempts) Attempt(_ context.Context, _, _, uid string) (endpoint.Attempt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.err; err != nil {
		a.err = nil
		return endpoint.Attempt{}, err
	}
	found, ok := a.byUID[uid]
	switch {
	case uid == "over":
		return found, endpoint.ErrOver
	case !ok:
		return found, fs.ErrNotExist
	}
	return found, nil
}

// world is an endpoint with one task: its pod is "mine".
type world struct {
	t        *testing.T
	base, ca string
	attempts *attempts
	objects  *artifacttest.Objects
	folder   string
	opts     artifact.Options
	run      engine.Run
	// before sees requests to the endpoint first; true is that it has answered.
	before func(w http.ResponseWriter, r *http.Request) bool
	store  string // the address of objects, without scheme
}

// newWorld starts an endpoint. Nothing in it waits.
func newWorld(t *testing.T, carry bool) *world {
	t.Helper()
	w := &world{t: t, objects: artifacttest.NewObjects(), folder: t.TempDir(), attempts: &attempts{byUID: map[string]endpoint.Attempt{}}}
	w.objects.Signed = true
	objects := httptest.NewServer(w.objects)
	t.Cleanup(objects.Close)
	w.store = strings.TrimPrefix(objects.URL, "http://")
	w.run = engine.Run{Name: "run", UID: "u", Namespace: "ns", ArtifactRoot: filepath.Join(w.folder, "root")}
	w.opts = artifact.Options{Secrets: func(name, _ string) (string, error) {
		if name != "s3" {
			return "", errors.New("secret " + name + " is not there")
		}
		return "secret", nil
	}}
	authority, err := endpoint.LoadAuthority(t.Context(), fake.NewClientset().CoreV1().Secrets("sluice"), "ca")
	if err != nil {
		t.Fatal(err)
	}
	w.ca = authority.CA()
	handler := endpoint.New(endpoint.Config{
		Reviewer: reviewer{"mine": {Namespace: "ns", Name: "pod", UID: "mine"}, "other": {Namespace: "ns", Name: "other", UID: "other"}, "over": {UID: "over"}, "lost": {UID: "lost"}},
		Attempts: w.attempts, Results: w.results(), Carry: carry,
	})
	front := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.before == nil || !w.before(rw, r) {
			handler.ServeHTTP(rw, r)
		}
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := endpoint.NewServer(front, authority.TLS("127.0.0.1"), slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	w.base = "https://" + listener.Addr().String()
	w.serve(program.Outputs{}, nil, nil)
	return w
}

// serve sets what the task of the pod "mine" has.
func (w *world) serve(outputs program.Outputs, places map[string]program.Artifact, inputs map[string][]program.Artifact) {
	cmd := engine.StartTask{Path: "run.task", Outputs: outputs, OutputArtifacts: places, Inputs: engine.Inputs{Artifacts: inputs}}
	w.attempts.mu.Lock()
	defer w.attempts.mu.Unlock()
	w.attempts.byUID["mine"] = endpoint.Attempt{Run: w.run, Cmd: cmd, Artifacts: w.opts}
	w.attempts.byUID["other"] = endpoint.Attempt{Run: w.run, Cmd: engine.StartTask{Path: "run.other"}, Artifacts: w.opts}
}

// results are where the endpoint keeps them.
func (w *world) results() endpoint.Results {
	return endpoint.StoredResults{Options: func(engine.Run) artifact.Options { return w.opts }}
}

// client makes one with a token. It waits for nothing, and has only so much patience.
func (w *world) client(token string) *client.Client {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	c, err := client.New(client.Config{
		Base: w.base + "/", CA: w.ca, TokenFile: file, Patience: 5 * time.Second, Chunk: 64 << 10,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// block makes a store block.
func block(t *testing.T, kind string, body map[string]any) program.JSON {
	t.Helper()
	data, err := json.Marshal(map[string]any{kind: body})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// at is a place in one of the stores.
func (w *world) at(kind, key string) program.Artifact {
	switch kind {
	case "folder":
		file := filepath.Join(w.folder, key)
		return program.Artifact{Name: "a", URI: file, Store: block(w.t, kind, map[string]any{"path": file})}
	case "http":
		return program.Artifact{Name: "a", URI: "http://" + w.store + "/web/" + key, Store: block(w.t, kind, map[string]any{
			"url": "http://" + w.store + "/web/" + key, "headers": []map[string]string{{"name": "Authorization", "value": "secret"}},
		})}
	}
	secret := map[string]string{"name": "s3", "key": "k"}
	return program.Artifact{Name: "a", URI: "s3://bucket/" + key, Store: block(w.t, "s3", map[string]any{
		"endpoint": w.store, "bucket": "bucket", "insecure": true, "key": key, "region": "us-east-1", "addressingStyle": "path",
		"accessKeySecret": secret, "secretKeySecret": secret,
	})}
}

// output declares one artifact.
func output(name string) program.Outputs {
	return program.Outputs{Artifacts: []program.OutputArtifact{{Name: name}}}
}
