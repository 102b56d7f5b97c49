//go:build whole

package readme

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// block is a fenced block of shell commands after the comment that says that it is tested.
var block = regexp.MustCompile("(?s)<!-- tested -->\n```sh\n(.*?)```")

// Each document's tested blocks are one shell session, line by line, with a home folder of its own.
func TestDocumentedCommands(t *testing.T) {
	root := sluicerun.Root(t)
	files := []string{filepath.Join(root, "README.md")}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			script.WriteString(m[1])
		}
		if script.Len() == 0 {
			continue
		}
		tested++
		t.Run(filepath.Base(file), func(t *testing.T) { session(t, root, script.String()) })
	}
	if tested == 0 {
		t.Fatal("no document has a tested block")
	}
}

func session(t *testing.T, root, script string) {
	t.Helper()
	p := sluicerun.Find(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p.Path = []string{filepath.Dir(p.Binary)}
	p.Dir = root
	p.Binary = "bash"
	cmd := p.Command(ctx, "-euxo", "pipefail", "-c", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("the commands hang:\n%s", &out)
	}
	if err != nil {
		t.Fatalf("a command failed (%v):\n%s", err, &out)
	}
	t.Logf("%s", &out)
}
