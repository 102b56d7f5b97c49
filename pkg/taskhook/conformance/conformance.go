// Package conformance is the test that a task hook plugin keeps Sluice's protocol, for plugins in any language:
//
//	func TestMyPlugin(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:8080/hook", hooktest.Options{Secret: []byte("secret"), Batch: true})
//	}
//
// It sends made-up reviews, so point it at a server that may record them.
package conformance

import (
	"testing"

	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

// Run puts the sample reviews to the server at url, each check a test of its own; problems fail it, notes are logged.
func Run(t *testing.T, url string, options hooktest.Options) {
	t.Helper()
	for _, f := range hooktest.Run(t.Context(), url, options) {
		t.Run(f.Check, func(t *testing.T) {
			if f.Level == hooktest.Problem {
				t.Error(f.Text)
				return
			}
			t.Logf("%s: %s", f.Level, f.Text)
		})
	}
}
