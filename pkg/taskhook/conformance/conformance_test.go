package conformance_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
	"github.com/sluice-ml/sluice/pkg/taskhook/conformance"
	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

type greeter struct{}

func (greeter) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	return taskhook.Run(map[string]any{"greeting": "hello " + r.Task.Name}), nil
}

func (greeter) Post(context.Context, *taskhook.Request) (*taskhook.Response, error) { return nil, nil } //nolint:nilnil // Done

// A plugin that is written with the kit keeps the contract.
func TestKit(t *testing.T) {
	secret := []byte("open sesame")
	server := httptest.NewServer(taskhook.Handler(greeter{}, taskhook.Options{
		Secrets: [][]byte{[]byte("an older one"), secret}, Logger: slog.New(slog.DiscardHandler),
	}))
	defer server.Close()
	conformance.Run(t, server.URL, hooktest.Options{Secret: secret, Batch: true})
}

// So does the example in Python, in each of its roles.
func TestPythonExample(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	for name, flags := range map[string][]string{
		"plain":       nil,
		"placeholder": {"--placeholder", "greeting=hello"},
		"reuse":       {"--reuse", `train={"parameters":{"accuracy":"0.9"}}`},
		"pending":     {"--pending", "Pre:train=0.3", "--pending", "Post:train=0.2"},
		"record":      {"--record", filepath.Join(t.TempDir(), "record.jsonl")},
		"remember":    {"--remember", filepath.Join(t.TempDir(), "memory.json")},
		"skip":        {"--skip", "train"},
		"fail":        {"--fail", "train-*"},
	} {
		t.Run(name, func(t *testing.T) {
			url := startPython(t, python, append([]string{"--secret-env", "HOOK_SECRET"}, flags...)...)
			conformance.Run(t, url, hooktest.Options{Secret: []byte("sesame"), Batch: true})
		})
	}
}

// startPython runs the example until the end of the test.
func startPython(t *testing.T, python string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	cmd := exec.CommandContext(ctx, python, append([]string{"../../../examples/hooks/plugin.py", "--port", "0"}, flags...)...)
	cmd.Env = append(cmd.Environ(), "HOOK_SECRET=sesame")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel(nil)
		_ = cmd.Wait() // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the plugin did not start: %v", err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// A plugin that forgets what it said is found out.
func TestFindsAPluginThatChangesItsMind(t *testing.T) {
	server := httptest.NewServer(taskhook.Handler(&fickle{}, taskhook.Options{}))
	defer server.Close()
	var found string
	for _, f := range hooktest.Run(t.Context(), server.URL, hooktest.Options{Points: []v1alpha1.Point{v1alpha1.Pre}}) {
		if f.Level == hooktest.Problem {
			found += f.Check + " "
		}
	}
	if found != "retry " {
		t.Errorf("problems: %q, want only retry", found)
	}
}

type fickle struct {
	greeter
	n int
}

func (f *fickle) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	if strings.HasSuffix(r.UID, "-first") {
		f.n++
	}
	return taskhook.Run(map[string]any{"n": f.n}), nil
}
