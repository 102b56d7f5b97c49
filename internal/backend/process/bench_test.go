package process_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// BenchmarkTask is what a task costs, two at a time, beside the same command run by xargs -P2. Each operation is one
// task, so that ns/op can be compared directly.
func BenchmarkTask(b *testing.B) {
	executor := filepath.Join(b.TempDir(), "sluice-executor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", executor, "../../../cmd/sluice-executor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Run("xargs", func(b *testing.B) {
		var lines bytes.Buffer
		for i := range b.N {
			fmt.Fprintln(&lines, i)
		}
		cmd := exec.Command("xargs", "-P2", "-n1", "sh", "-c", "exit 0")
		cmd.Stdin = &lines
		b.ResetTimer()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	})
	for _, mode := range []process.Mode{process.Off, process.On} {
		b.Run("sandbox="+string(mode), func(b *testing.B) { benchmarkTasks(b, executor, mode) })
	}
}

func benchmarkTasks(b *testing.B, executor string, mode process.Mode) {
	sink := make(events, 4*b.N+16)
	backend, err := process.New(process.Config{
		Home: b.TempDir(), Executor: []string{executor}, Sandbox: mode, MaxParallel: 2, Env: os.Environ(),
	}, sink)
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		if err := backend.Close(); err != nil {
			b.Error(err)
		}
	})
	run := engine.Run{Name: "bench", UID: "bench"}
	b.ResetTimer()
	for i := range b.N {
		cmd := shell(fmt.Sprintf("bench.t%d", i), "exit 0")
		cmd.Body.Result = false
		cmd.Template = &program.Template{}
		if err := backend.Start(b.Context(), run, cmd); err != nil {
			b.Fatal(err)
		}
	}
	for ended := 0; ended < b.N; {
		e := <-sink
		if e.Finished == nil {
			continue
		}
		if e.Finished.Result.Phase != engine.SucceededPhase {
			b.Fatalf("%+v", e.Finished.Result)
		}
		ended++
	}
}
