package kube

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// What is too large for a manifest is not brought to the controller at all.
func TestLargeManifestIsNotFetched(t *testing.T) {
	var fetched atomic.Int64
	size := maxManifest + 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fetched.Add(1)
		}
		http.ServeContent(w, r, "", aRun.Created, strings.NewReader(strings.Repeat(" ", size)))
	}))
	defer server.Close()
	b := open(t, newCluster(), newTold())
	cmd := engine.StartTask{Inputs: engine.Inputs{Artifacts: map[string][]program.Artifact{"m": {{Name: "m", URI: server.URL}}}}}
	if _, err := b.manifestFrom(t.Context(), aRun, cmd, "m"); err == nil || fetched.Load() > 0 {
		t.Errorf("of %d bytes: %v, fetched %d times", size, err, fetched.Load())
	}
	size = maxManifest
	if text, err := b.manifestFrom(t.Context(), aRun, cmd, "m"); err != nil || len(text) != size {
		t.Errorf("of %d bytes: %d, %v", size, len(text), err)
	}
}
