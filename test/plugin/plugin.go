// Package plugin runs the Python plugin of examples/hooks for whole-program tests.
package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// Plugin is the Python plugin as a process.
type Plugin struct {
	t      *testing.T
	cmd    *exec.Cmd
	record string
	// Address is the URL that it listens at.
	Address string
}

// Start starts the plugin of examples/hooks with a record file. Without a port it takes a free one.
func Start(t *testing.T, record string, args ...string) *Plugin {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script := filepath.Join(sluicerun.Root(t), "examples", "hooks", "plugin.py")
	args = append([]string{"-B", script, "--port", "0", "--record", record}, args...)
	p := &Plugin{t: t, record: record, cmd: exec.CommandContext(context.Background(), python, args...)}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the plugin said %q: %v", line, err)
	}
	p.Address = address
	return p
}

// Kill ends the plugin by signal 9.
func (p *Plugin) Kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// Port is the number at the end of the address.
func (p *Plugin) Port() string {
	return p.Address[strings.LastIndex(p.Address, ":")+1:]
}

// Review is a line of the plugin's record.
type Review struct {
	UID, Point, Workflow, Task, Path, Decision, Phase string
	Time                                              time.Time
	Reused                                            bool
}

// Reviews reads the record so far.
func (p *Plugin) Reviews() []Review {
	p.t.Helper()
	text, err := os.ReadFile(p.record)
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	var all []Review
	for line := range strings.Lines(string(text)) {
		var r Review
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("record line %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}
