package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// events collects what the backend tells.
type events chan engine.Event

func (e events) Tell(_ string, event engine.Event) { e <- event }

func (e events) finished(t *testing.T) engine.Result {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case event := <-e:
			if event.Finished != nil {
				return event.Finished.Result
			}
		case <-timeout:
			t.Fatal("no Finished event")
		}
	}
}

var run = engine.Run{UID: "u"}

func start(t *testing.T, cfg Config, cmd engine.StartTask) (*Backend, events) {
	t.Helper()
	sink := make(events, 16)
	b := New(cfg, sink)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	return b, sink
}

func request(r program.Request) engine.StartTask {
	return engine.StartTask{Node: 1, Path: "run.t", Body: program.Body{Kind: program.HTTP, Request: &r}}
}

// echo answers with what it was sent; /fail with an error, /hang not before the request ends.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fail":
			http.Error(w, "sorry", http.StatusTeapot)
			return
		case "/hang":
			<-r.Context().Done()
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Header.Get("X-Sent"))
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	t.Cleanup(server.Close)
	return server
}

// What may be reached holds for requests that ask for settings of their own, too.
func TestTransportDecidesWhatIsReached(t *testing.T) {
	server := echo(t)
	refused := errors.New("not this one")
	cfg := Config{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused }}}
	for _, insecure := range []bool{false, true} {
		_, sink := start(t, cfg, request(program.Request{URL: server.URL, InsecureSkipVerify: insecure}))
		if r := sink.finished(t); r.Phase != engine.FailedPhase || !strings.Contains(r.Message, refused.Error()) {
			t.Errorf("insecure %v: %s %q", insecure, r.Phase, r.Message)
		}
	}
}

func TestRequests(t *testing.T) {
	server := echo(t)
	cfg := Config{
		Artifacts: func(run engine.Run) artifact.Options {
			return artifact.Options{Secrets: func(name, key string) (string, error) {
				switch run.UID + "/" + name + "/" + key {
				case "u/s/k":
					return "secret", nil
				case "u/later/k":
					return "", fmt.Errorf("%w: try again", artifact.ErrNotNow)
				}
				return "", fmt.Errorf("no key %q of a Secret %q", key, name)
			}}
		},
		Eval: func(source string, vars map[string]any) (any, error) {
			answer := vars["response"].(map[string]any)
			asked := vars["request"].(map[string]any)
			switch source {
			case "teapot":
				return answer["statusCode"] == int64(418) && asked["url"] == server.URL+"/fail", nil
			case "body":
				return strings.HasPrefix(answer["body"].(string), "POST data") && asked["method"] == "POST" && asked["body"] == "data", nil
			case "header":
				return fmt.Sprint(answer["headers"].(map[string]any)["X-Seen"]) == "[secret]", nil
			case "text":
				return "yes", nil
			}
			return nil, errors.New("no such thing")
		},
	}
	for name, test := range map[string]struct {
		request program.Request
		phase   engine.Phase
		message string
		result  string
	}{
		"GET":                         {program.Request{URL: "/"}, engine.SucceededPhase, "", "GET "},
		"POST":                        {program.Request{URL: "/", Method: "post", Body: "data", SuccessCondition: "body"}, engine.SucceededPhase, "", "POST data"},
		"bytes":                       {program.Request{URL: "/", Method: "PUT", BodyBytes: []byte("raw")}, engine.SucceededPhase, "", "PUT raw"},
		"a secret header":             {program.Request{URL: "/", Headers: []program.EnvVar{{Name: "X-Sent", Secret: "s", Key: "k"}}, SuccessCondition: "header"}, engine.SucceededPhase, "", "GET "},
		"a status other than 2xx":     {program.Request{URL: "/fail"}, engine.FailedPhase, "received non-2xx response code: 418", "sorry\n"},
		"any status with a condition": {program.Request{URL: "/fail", SuccessCondition: "teapot"}, engine.SucceededPhase, "", "sorry\n"},
		"a condition that is false":   {program.Request{URL: "/", SuccessCondition: "teapot"}, engine.FailedPhase, "successCondition 'teapot' evaluated false", "GET "},
		"a condition that is broken":  {program.Request{URL: "/", SuccessCondition: "x"}, engine.ErrorPhase, `successCondition "x": no such thing`, "GET "},
		"a condition that is a text":  {program.Request{URL: "/", SuccessCondition: "text"}, engine.ErrorPhase, "is no boolean but string", "GET "},
		"an unknown secret":           {program.Request{URL: "/", Headers: []program.EnvVar{{Name: "A", Secret: "none", Key: "k"}}}, engine.ErrorPhase, `header A: no key "k" of a Secret "none"`, ""},
		"an optional secret":          {program.Request{URL: "/", Headers: []program.EnvVar{{Name: "A", Secret: "none", Key: "k", Optional: true}}}, engine.SucceededPhase, "", "GET "},
		"a secret that is late":       {program.Request{URL: "/", Headers: []program.EnvVar{{Name: "A", Secret: "later", Key: "k", Optional: true}}}, engine.ErrorPhase, "header A: not to be had at the moment: try again", ""},
		"a timeout of its own":        {program.Request{URL: "/hang", TimeoutSeconds: 1}, engine.FailedPhase, "Client.Timeout", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.request.URL = server.URL + test.request.URL
			_, sink := start(t, cfg, request(test.request))
			r := sink.finished(t)
			if r.Phase != test.phase || !strings.Contains(r.Message, test.message) || test.message == "" && r.Message != "" {
				t.Errorf("%s %q", r.Phase, r.Message)
			}
			if got := r.Outputs.Result; test.result != "" && (got == nil || *got != test.result) {
				t.Errorf("result %v", got)
			}
		})
	}
}

func TestRequestIsStopped(t *testing.T) {
	server := echo(t)
	cmd := request(program.Request{URL: server.URL + "/hang"})
	b, sink := start(t, Config{}, cmd)
	if err := b.Stop(t.Context(), run, engine.StopTask{Path: cmd.Path, Message: "enough"}); err != nil {
		t.Fatal(err)
	}
	if r := sink.finished(t); r.Phase != engine.FailedPhase || r.Message != "enough" || r.Transient {
		t.Errorf("%+v", r)
	}
	cmd.Path, cmd.Timeout = "run.slow", 20*time.Millisecond
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	if r := sink.finished(t); r.Phase != engine.FailedPhase || !strings.Contains(r.Message, "timeout of 20ms") {
		t.Errorf("%+v", r)
	}
}

func TestStartIsIdempotent(t *testing.T) {
	asked := make(chan bool, 8)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- true }))
	defer server.Close()
	cmd := request(program.Request{URL: server.URL})
	cfg := Config{Home: t.TempDir()}
	b, sink := start(t, cfg, cmd)
	first := sink.finished(t)
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, sink.finished(t)); diff != "" {
		t.Error(diff)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b, sink = start(t, cfg, cmd)
	if diff := cmp.Diff(first, sink.finished(t)); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(b.Forget(t.Context(), run, cmd.Path), b.Start(t.Context(), run, cmd)); err != nil {
		t.Fatal(err)
	}
	sink.finished(t)
	if n := len(asked); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestData(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b/two", "one"} {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Eval: func(source string, vars map[string]any) (any, error) {
		list := vars["data"].([]any)
		switch source {
		case "reverse":
			return []any{list[1], list[0]}, nil
		case "first":
			return list[:1], nil
		}
		return nil, errors.New("no such thing")
	}}
	data := func(transformation string) engine.StartTask {
		return engine.StartTask{Node: 1, Path: "run.t", Body: program.Body{Kind: program.Data,
			Source: &program.Binding{Location: program.JSON(`{"folder":{"path":"` + folder + `"}}`)},
			Data:   program.JSON(`{"source":{"artifactPaths":{"name":"x"}},"transformation":[` + transformation + `]}`)}}
	}
	_, sink := start(t, cfg, data(`{"expression":"reverse"},{"expression":"first"}`))
	if r := sink.finished(t); r.Phase != engine.SucceededPhase || *r.Outputs.Result != `["`+folder+`/one"]` {
		t.Errorf("%+v", r)
	}
	keyed := data("")
	keyed.Body.Data = program.JSON(`{"source":{"artifactPaths":{"name":"x","s3":{"key":"in"}}},"transformation":[{"expression":"reverse"}]}`)
	_, sink = start(t, cfg, keyed)
	if r := sink.finished(t); r.Phase != engine.SucceededPhase || *r.Outputs.Result != `["in/one","in/b/two"]` {
		t.Errorf("%+v", r)
	}
	_, sink = start(t, cfg, data(`{"expression":"reverse"},{"expression":"x"}`))
	if r := sink.finished(t); r.Phase != engine.ErrorPhase || r.Message != "data.transformation[1]: no such thing" {
		t.Errorf("%+v", r)
	}
	cmd := data("")
	cmd.Body.Source = &program.Binding{Location: program.JSON(`{"hdfs":{}}`)}
	_, sink = start(t, cfg, cmd)
	if r := sink.finished(t); r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, "data.source.artifactPaths") {
		t.Errorf("%+v", r)
	}
}

func TestKindsThatNeedMore(t *testing.T) {
	for kind, want := range map[program.Kind]string{
		program.Resource: "run this workflow with the Kubernetes backend", program.Plugin: "no hook plugin answered for plugin slack: register a TaskHook",
		"strange": `cannot run a task of kind "strange"`, program.HTTP: "has no request", program.Importer: "has no URI",
	} {
		_, sink := start(t, Config{}, engine.StartTask{Path: "run.t", Body: program.Body{Kind: kind, Plugin: program.JSON(`{"slack":{}}`)}})
		if r := sink.finished(t); r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, want) {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}
