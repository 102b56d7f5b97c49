//go:build whole

package hooks

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// A plugin that talks nonsense is asked again, then costs the task, with a message that says whose fault it is and what was
// wrong; with failurePolicy Ignore it costs nothing.
func TestPluginsThatTalkNonsense(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"garbage": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) },
			[]string{"JSON"},
		},
		"another uid": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":{"uid":"x","decision":"Run"}}`))
			},
			[]string{"uid"},
		},
		"status 500": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "the database is down", http.StatusInternalServerError)
			},
			[]string{"500", "the database is down"},
		},
		"ten megabytes": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("a"), 10<<20)) },
			[]string{"1 MiB"},
		},
		"nothing": {
			func(http.ResponseWriter, *http.Request) {},
			[]string{"empty"},
		},
		"a closed connection": {
			func(w http.ResponseWriter, _ *http.Request) {
				if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
					_ = c.Close()
				}
			},
			[]string{"connection"},
		},
		"no answer in time": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			[]string{"1s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sluicerun.Find(t)
			var calls atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				var body bytes.Buffer
				_, _ = body.ReadFrom(r.Body)
				test.answer(w, r)
			}))
			defer server.Close()
			body := `
  - name: main
    container: {image: busybox, command: ["true"]}
`
			hook := strings.Replace(document("bad", server.URL, "  timeoutSeconds: 1\n"), "limit: 40", "limit: 2", 1)
			r := workflow(t, p, hook, "watched: 'yes'", body)
			if r.phase != "Error" && r.phase != "Failed" || r.out.Exit != 1 {
				t.Errorf("the workflow is %s, exit code %d, want a failure", r.phase, r.out.Exit)
			}
			if got := calls.Load(); got != 3 {
				t.Errorf("the plugin was called %d times, want 3", got)
			}
			var message string
			for _, text := range r.note {
				message += text
			}
			for _, word := range append(test.words, "hook bad") {
				if !strings.Contains(message, word) {
					t.Errorf("the message lacks %q: %s", word, message)
				}
			}
			if len(message) > 2000 {
				t.Errorf("the message has %d characters", len(message))
			}
			ignored := strings.Replace(hook, "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
			workflow(t, p, ignored, "watched: 'yes'", body).succeeded(t)
		})
	}
}
