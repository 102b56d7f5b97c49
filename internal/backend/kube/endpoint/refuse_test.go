package endpoint_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// send sends a request as a stranger's client might.
func (w *world) send(token, method, path, body string) (int, http.Header, spec.Problem) {
	w.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.ca))
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	r, err := c.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var problem spec.Problem
	_ = json.Unmarshal(data, &problem) // successes have others
	return r.StatusCode, r.Header, problem
}

func TestWhoIsLetIn(t *testing.T) {
	w := newWorld(t, false)
	tests := map[string]struct {
		token  string
		status int
		retry  string
		want   string
	}{
		"no token":                {status: 401, want: "send the pod's token for the audience sluice.dev/task-endpoint as a bearer token"},
		"another scheme":          {token: "Basic bWluZTp4", status: 401, want: "as a bearer token"},
		"nonsense":                {token: "Bearer nonsense", status: 401, want: "the token is not valid here: it must be a pod's"},
		"far too long":            {token: "Bearer " + strings.Repeat("x", 17<<10), status: 401, want: "as a bearer token"},
		"nobody can say":          {token: "Bearer ask later", status: 503, retry: "2", want: "try again"},
		"a pod that is not known": {token: "Bearer lost", status: 503, retry: "2", want: "is not known yet as one of a task: try again"},
		"an attempt that is over": {token: "Bearer over", status: 410, want: "has ended"},
		"a task's pod":            {token: "bearer mine", status: 204},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, header, problem := w.send(test.token, http.MethodPut, spec.ResultPath, `{"phase":"Succeeded"}`)
			if status != test.status || header.Get("Retry-After") != test.retry || !strings.Contains(problem.Error, test.want) {
				t.Errorf("%d, Retry-After %q: %q", status, header.Get("Retry-After"), problem.Error)
			}
		})
	}
	w.attempts.err = errors.New("the informer has not synced")
	if status, _, problem := w.send("Bearer mine", http.MethodPut, spec.ResultPath, `{}`); status != 503 || strings.Contains(problem.Error, "informer") {
		t.Errorf("%d, %q", status, problem.Error)
	}
}

// A pod reaches the artifacts of its own attempt and nothing else.
func TestWhatATaskMayNot(t *testing.T) {
	w := newWorld(t, false)
	place := w.at("folder", "run/task/out")
	w.serve(output("out"), map[string]program.Artifact{"out": place, "undeclared": place}, map[string][]program.Artifact{"in": {w.at("folder", "in")}})
	if err := os.WriteFile(w.folder+"/in", []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.folder+"/secret", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := `{"name":"` + strings.Repeat("x", spec.MaxAsk) + `"}`
	tests := map[string]struct {
		ask    string
		status int
		want   string
	}{
		"another's input":           {`{"op":"get","direction":"in","name":"theirs"}`, 403, `no input artifact "theirs"`},
		"an input beyond the last":  {`{"op":"get","direction":"in","name":"in","index":1}`, 403, "with number 1"},
		"an input before the first": {`{"op":"get","direction":"in","name":"in","index":-1}`, 403, "with number -1"},
		"an output not declared":    {`{"op":"put","direction":"out","name":"undeclared"}`, 403, `no output artifact "undeclared"`},
		"to write an input":         {`{"op":"put","direction":"in","name":"in"}`, 403, "reads its inputs and writes its outputs"},
		"to delete an input":        {`{"op":"delete","direction":"in","name":"in"}`, 403, "reads its inputs and writes its outputs"},
		"to read an output":         {`{"op":"get","direction":"out","name":"out"}`, 403, "reads its inputs and writes its outputs"},
		"to climb up":               {`{"op":"get","direction":"in","name":"in","key":"../secret"}`, 403, "leaves its artifact"},
		"to climb up later":         {`{"op":"put","direction":"out","name":"out","key":"a/../../x"}`, 403, "leaves its artifact"},
		"an absolute key":           {`{"op":"put","direction":"out","name":"out","key":"/etc/passwd"}`, 403, "leaves its artifact"},
		"a key with a backslash":    {`{"op":"put","direction":"out","name":"out","key":"..\\x"}`, 403, "leaves its artifact"},
		"a key with a NUL":          {`{"op":"put","direction":"out","name":"out","key":"a\u0000b"}`, 403, "leaves its artifact"},
		"a key that is too long":    {`{"op":"put","direction":"out","name":"out","key":"` + strings.Repeat("k", 1025) + `"}`, 403, "leaves its artifact"},
		"the artifact's dot":        {`{"op":"delete","direction":"out","name":"out","key":"."}`, 403, "leaves its artifact"},
		"a place elsewhere":         {`{"op":"put","direction":"out","name":"out","uri":"/etc/x"}`, 409, "is not beside the place"},
		"a place up there":          {`{"op":"delete","direction":"out","name":"out","uri":"` + w.folder + `/run/task/../../secret"}`, 409, "is not beside the place"},
		"a direction":               {`{"op":"get","direction":"up","name":"in"}`, 400, `no direction "up"`},
		"an operation":              {`{"op":"chmod","direction":"in","name":"in"}`, 403, `"chmod" is no operation`},
		"parts of a folder":         {`{"op":"part","direction":"out","name":"out","upload":"u","part":1}`, 400, "takes no parts"},
		"nonsense":                  {`{`, 400, "no question in JSON"},
		"far too much":              {large, 413, "more than 2097152 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, _, problem := w.send("Bearer mine", http.MethodPost, spec.SignPath, test.ask)
			if status != test.status || !strings.Contains(problem.Error, test.want) {
				t.Errorf("%d: %q", status, problem.Error)
			}
		})
	}
	for path, status := range map[string]int{
		"?direction=in&name=in&key=..%2Fsecret": 403, "?direction=in&name=in&index=x": 400, "?direction=out&name=out": 403, "?direction=in&name=theirs": 403,
	} {
		if got, _, problem := w.send("Bearer mine", http.MethodGet, spec.DataPath+path, ""); got != status || problem.Error == "" {
			t.Errorf("GET %s: %d %q", path, got, problem.Error)
		}
	}
	for path, status := range map[string]int{
		"?direction=in&name=in": 403, "?direction=out&name=out&key=..%2Fsecret": 403, "?direction=out&name=out&uri=%2Fetc%2Fx": 409,
	} {
		if got, _, problem := w.send("Bearer mine", http.MethodPut, spec.DataPath+path, "overwritten"); got != status || problem.Error == "" {
			t.Errorf("PUT %s: %d %q", path, got, problem.Error)
		}
	}
	// The same questions from a pod of another task: nothing of this one's is there.
	for _, ask := range []string{`{"op":"get","direction":"in","name":"in"}`, `{"op":"put","direction":"out","name":"out"}`} {
		if status, _, _ := w.send("Bearer other", http.MethodPost, spec.SignPath, ask); status != 403 {
			t.Errorf("another pod's %s: %d", ask, status)
		}
	}
	for file, want := range map[string]string{"/secret": "secret", "/in": "input"} {
		if data, err := os.ReadFile(w.folder + file); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
}

func TestPartsOfAnUpload(t *testing.T) {
	w := newWorld(t, false)
	w.serve(output("out"), map[string]program.Artifact{"out": w.at("s3", "k")}, nil)
	for ask, want := range map[string]string{
		`{"op":"part","direction":"out","name":"out","part":1}`:                   "part needs an upload",
		`{"op":"part","direction":"out","name":"out","upload":"u","part":0}`:      "part 0: parts are numbered from 1 to 10000",
		`{"op":"part","direction":"out","name":"out","upload":"u","part":10001}`:  "part 10001: parts are",
		`{"op":"finish","direction":"out","name":"out","upload":"","parts":[{}]}`: "finish needs an upload",
	} {
		if status, _, problem := w.send("Bearer mine", http.MethodPost, spec.SignPath, ask); status != 400 || !strings.Contains(problem.Error, want) {
			t.Errorf("%s: %d %q", ask, status, problem.Error)
		}
	}
}

func TestResultsAreKept(t *testing.T) {
	w := newWorld(t, false)
	if status, _, problem := w.send("Bearer mine", http.MethodPut, spec.ResultPath, "{"); status != 400 {
		t.Errorf("%d %q", status, problem.Error)
	}
	if status, _, problem := w.send("Bearer mine", http.MethodPut, spec.ResultPath, strings.Repeat("x", spec.MaxStored+1)); status != 413 {
		t.Errorf("%d %q", status, problem.Error)
	}
	for _, run := range []string{"root", "repository", "nowhere"} {
		switch run {
		case "repository":
			w.run.Repository = []byte(strings.Replace(string(w.at("s3", "by-format").Store), `"key":"by-format"`, `"keyFormat":"a/{{pod.name}}"`, 1))
		case "nowhere":
			w.run.ArtifactRoot, w.run.Repository = "", nil
		}
		w.serve(program.Outputs{}, nil, nil)
		err := w.client("mine").PutResult(t.Context(), []byte(`{"phase":"Succeeded"}`))
		if run == "nowhere" {
			if err == nil || !strings.Contains(err.Error(), "has no artifact repository to keep it in: configure one") {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := w.results()
		if data, err := kept.Get(t.Context(), w.run, "run.task"); err != nil || string(data) != `{"phase":"Succeeded"}` {
			t.Errorf("%q, %v", data, err)
		}
		if _, err := kept.Get(t.Context(), w.run, "run.other"); err == nil {
			t.Error("another attempt has a result")
		}
	}
	if names := w.objects.Names(); len(names) != 1 || !strings.HasPrefix(names[0], "/bucket/sluice-results/ns/run-u/") {
		t.Errorf("%v", names)
	}
}
