package hook

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// Whatever a server does, its review ends with a reason that says what was wrong, after the retries are spent.
func TestBadServers(t *testing.T) {
	good := `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":`
	write := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  []string
	}{
		"garbage":         {write(200, "\x00\xff certainly not JSON"), []string{"bad answer", "is not JSON"}},
		"HTML":            {write(200, "<html>welcome</html>"), []string{"bad answer", "is not JSON", "<html>"}},
		"500":             {write(500, "database is down\n"), []string{"HTTP 500: database is down"}},
		"404":             {write(404, ""), []string{"HTTP 404"}},
		"nothing":         {write(200, ""), []string{"bad answer", "it is empty"}},
		"no content":      {write(204, ""), []string{"HTTP 204"}},
		"10 MB":           {write(200, good+`{"uid":"u1","decision":"Run","message":"`+strings.Repeat("x", 10<<20)+`"}}`), []string{"bad answer", "larger than 1 MiB"}},
		"10 MB of errors": {write(500, strings.Repeat("no ", 4<<20)), []string{"HTTP 500: no no"}},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/hook", http.StatusTemporaryRedirect)
		}, []string{"HTTP 307", "https://elsewhere.example/hook", "redirects are not followed"}},
		"wrong uid":      {write(200, good+`{"uid":"other","decision":"Run"}}`), []string{"bad answer", "response.uid", `"u1"`, `"other"`}},
		"no uid":         {write(200, good+`{"decision":"Run"}}`), []string{"bad answer", "response.uid: is missing"}},
		"unknown fields": {write(200, good+`{"uid":"u1","dicision":"Run"}}`), []string{"bad answer", "response.dicision", `did you mean "decision"`}},
		"wrong kind":     {write(200, `{"apiVersion":"v1","kind":"Pod"}`), []string{"bad answer", "apiVersion", "kind"}},
		"Post's word":    {write(200, good+`{"uid":"u1","decision":"Done"}}`), []string{"bad answer", "response.decision", "Run Reuse Skip Fail"}},
		"large state":    {write(200, good+`{"uid":"u1","decision":"Run","state":"`+strings.Repeat("s", 17<<10)+`"}}`), []string{"response.state", "16 KiB"}},
		"large placeholders": {
			write(200, good+`{"uid":"u1","decision":"Run","placeholders":{"a":"`+strings.Repeat("s", 65<<10)+`"}}}`), []string{"response.placeholders", "64 KiB"},
		},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) { hangUp(w) }, []string{"closed the connection"}},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, good)
		}, []string{"closed the connection"}},
		"bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 8<<20))
			_ = z.Close()
		}, []string{"larger than 1 MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := serving(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				test.serve(w, r)
			})
			d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL)))
			d.Ask(context.Background(), testRun, testProgram, ask("u1"))
			failure := sink.next(t).Failure
			wantText(t, "the failure", failure, append(test.want, "attempt 3 of 3")...)
			if calls.Load() != 3 {
				t.Errorf("%d calls, want 3", calls.Load())
			}
			if len(failure) > 600 {
				t.Errorf("the failure has %d bytes", len(failure))
			}
		})
	}
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestSlowServer(t *testing.T) {
	release := make(chan struct{})
	server := serving(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, "timeoutSeconds: 1", "retry: {limit: 0}")))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got, want := sink.next(t).Failure, "no answer within 1s, attempt 1 of 1"; got != want {
		t.Errorf("failure is %q, want %q", got, want)
	}
}

type tokens map[string]string

func (m tokens) Token(_ context.Context, audience string) (string, error) { return m[audience], nil }

// A plugin that asks for it gets a bearer token for its audience, and no other.
func TestServiceAccountToken(t *testing.T) {
	got := make(chan string, 1)
	server := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusTeapot)
	})
	hooks := load(t, httpHook(server.URL, "retry: {limit: 0}"))
	hooks[0].Spec.HTTP.Auth = &v1alpha1.HTTPAuth{ServiceAccountToken: &v1alpha1.ServiceAccountToken{Audience: "lineage.ml"}}
	d, sink := dispatcher(t, Config{Tokens: tokens{"lineage.ml": "one", "other": "two"}}, hooks)
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	sink.next(t)
	if h := <-got; h != "Bearer one" {
		t.Errorf("Authorization is %q, want the token of the audience", h)
	}
}

// A hook that may not be asked fails with the reason, and its plugin is not called.
func TestRefusedHook(t *testing.T) {
	server := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("the plugin was called") })
	hooks := load(t, httpHook(server.URL, "retry: {limit: 0}"))
	hooks[0].Refused = "it may not reach example.org"
	d, sink := dispatcher(t, Config{}, hooks)
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got := sink.next(t).Failure; !strings.Contains(got, "it may not reach example.org") {
		t.Errorf("failure is %q, want the reason", got)
	}
}

func TestServerThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	d, sink := dispatcher(t, Config{}, load(t, httpHook(url)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got, want := sink.next(t).Failure, "connection refused, attempt 3 of 3"; got != want {
		t.Errorf("failure is %q, want %q", got, want)
	}
	if got, want := sink.messages()[1], "waiting for hook lineage: connection refused, attempt 2"; got != want {
		t.Errorf("note is %q, want %q", got, want)
	}
}

// A plugin that is killed and comes back on the same address gets the review with the same uid, and the task goes on.
func TestPluginKilledAndRestarted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	uids := make(chan string, 100)
	dying := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uids <- r.Header.Get(v1alpha1.HeaderDelivery)
		hangUp(w)
	})}
	go func() { _ = dying.Serve(listener) }()
	d, sink := dispatcher(t, Config{}, load(t, httpHook("http://"+address, "retry: {limit: 200, backoff: {duration: 5ms, cap: 20ms}}")))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	<-uids
	_ = dying.Close()

	var listening net.Listener
	for listening == nil { // the address may take a moment to become free
		listening, _ = net.Listen("tcp", address)
	}
	alive := httptest.NewUnstartedServer(taskhook.Handler(echo{}, taskhook.Options{}))
	alive.Listener = listening
	alive.Start()
	defer alive.Close()
	if got := sink.next(t); got.Failure != "" || got.Answer.Placeholders["uid"] != "u1" {
		t.Errorf("answer is %+v", got)
	}
}

// echo answers with what it was asked.
type echo struct{}

func (echo) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	return taskhook.Run(map[string]any{"uid": r.UID, "template": string(r.Task.TemplateSpec)}), nil
}

func (echo) Post(context.Context, *taskhook.Request) (*taskhook.Response, error) {
	return taskhook.Done(), nil
}

func TestRetryAfterIsObeyed(t *testing.T) {
	var calls atomic.Int32
	server := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		writeReview(w, &v1alpha1.TaskReviewResponse{UID: "u1", Decision: v1alpha1.Run})
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL)))
	began := time.Now()
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	sink.next(t)
	if took := time.Since(began); took < time.Second {
		t.Errorf("asked again after %s, though told to wait a second", took)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(taskhook.Handler(echo{}, taskhook.Options{}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	trusting := load(t, httpHook(server.URL))
	trusting[0].Spec.HTTP.CABundle = bundle
	d, sink := dispatcher(t, Config{}, trusting)
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got := sink.next(t); got.Failure != "" {
		t.Errorf("with its caBundle: %s", got.Failure)
	}

	d, sink = dispatcher(t, Config{}, load(t, httpHook(server.URL)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	wantText(t, "without it, the failure", sink.next(t).Failure, "TLS", "unknown authority")

	elsewhere := load(t, httpHook(strings.Replace(server.URL, "127.0.0.1", "localhost", 1)))
	elsewhere[0].Spec.HTTP.CABundle = bundle
	d, sink = dispatcher(t, Config{}, elsewhere)
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	wantText(t, "under another name, the failure", sink.next(t).Failure, "TLS", "localhost")
}

func TestSignedRequests(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(folder, "secret")
	if err := os.WriteFile(secret, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	server := httptest.NewServer(taskhook.Handler(echo{}, taskhook.Options{Secrets: [][]byte{[]byte("open sesame")}, Logger: quiet}))
	defer server.Close()
	document := strings.Replace(httpHook(server.URL), "}\n", ", auth: {hmac: {secretFrom: {file: secret}}}}\n", 2)
	document = strings.Replace(document, "metadata: {name: lineage, auth: {hmac: {secretFrom: {file: secret}}}}", "metadata: {name: lineage}", 1)
	hooks, err := LoadFile(filepath.Join(folder, "hooks.yaml"), []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	d, sink := dispatcher(t, Config{Secrets: LocalSecrets{}}, hooks)
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got := sink.next(t); got.Failure != "" {
		t.Fatal(got.Failure)
	}
	// It is read anew for each call, and what is wrong with it does not show it.
	if err := os.WriteFile(secret, []byte("open barley"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Ask(context.Background(), testRun, testProgram, ask("u2"))
	failure := sink.next(t).Failure
	wantText(t, "the failure", failure, "HTTP 401", "signature does not fit")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	d.Ask(context.Background(), testRun, testProgram, ask("u3"))
	failure += sink.next(t).Failure
	wantText(t, "the failure", failure, "secret: ", secret+": no such file")
	if all := failure + strings.Join(sink.messages(), ""); strings.Contains(all, "barley") || strings.Contains(all, "sesame") {
		t.Errorf("a message shows the secret: %s", all)
	}
}

func TestLinkLocalAddressesAreNotCalled(t *testing.T) {
	d, sink := dispatcher(t, Config{}, load(t, httpHook("http://169.254.169.254/latest", "retry: {limit: 0}")))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	wantText(t, "the failure", sink.next(t).Failure, "link-local")
}

func TestURLIsReadLive(t *testing.T) {
	first := answering(t, func(*v1alpha1.TaskReviewRequest) *v1alpha1.TaskReviewResponse {
		return &v1alpha1.TaskReviewResponse{Decision: v1alpha1.Skip}
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(first.URL)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	sink.next(t)
	second := httptest.NewServer(taskhook.Handler(echo{}, taskhook.Options{}))
	defer second.Close()
	if err := d.cfg.Registry.Replace(load(t, httpHook(second.URL))); err != nil {
		t.Fatal(err)
	}
	d.Ask(context.Background(), testRun, testProgram, ask("u2"))
	if got := sink.next(t); got.Answer.Placeholders["uid"] != "u2" {
		t.Errorf("the second review was answered %+v, not by the second server", got)
	}
	if err := d.cfg.Registry.Replace(nil); err != nil {
		t.Fatal(err)
	}
	d.Ask(context.Background(), testRun, testProgram, ask("u3"))
	wantText(t, "after it was deleted, the failure", sink.next(t).Failure, "not registered any more")
}
