package process_test

import (
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
)

func TestMemoryLimit(t *testing.T) {
	for _, mode := range []process.Mode{process.Off, process.On} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == process.On {
				needSandbox(t)
			}
			var warnings strings.Builder
			b, sink := open(t, func(c *process.Config) { c.Sandbox, c.Limits, c.Log = mode, true, logTo(&warnings) })
			if strings.Contains(warnings.String(), "not enforced") {
				t.Skip(warnings.String())
			}
			cmd := shell("run.greedy", "dd if=/dev/zero of=/dev/null bs=256M count=1")
			cmd.Body.Containers[0].MemoryLimit = "32Mi"
			if err := b.Start(t.Context(), engine.Run{UID: "u"}, cmd); err != nil {
				t.Fatal(err)
			}
			r := sink.finished(t)
			if r.Phase != engine.FailedPhase || r.Message != "main: OOMKilled (exit code 137)" {
				t.Errorf("%+v", r)
			}
		})
	}
}
