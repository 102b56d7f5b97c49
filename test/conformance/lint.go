package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sluice-ml/sluice/test/conformance/argocheck"
	"github.com/sluice-ml/sluice/test/conformance/corpus"
)

// lintSuite lints every manifest of the corpora, whatever its class: all are accepted but those that upstream refuses.
type lintSuite struct{ options }

func (s *lintSuite) prepare(context.Context) (string, error) { return "", nil }

func (s *lintSuite) check(ctx context.Context, m corpus.Manifest) []string {
	program, done, err := s.home(nil)
	if err != nil {
		return []string{err.Error()}
	}
	defer done(false)
	refuse := m.Class == "rejected" || m.Class == "invalid" || m.State == "rejected"
	if _, err := os.Stat(m.ExpectedPath()); err == nil && m.Suite == "argo" {
		want, err := argocheck.ReadExpected(m.ExpectedPath())
		if err != nil {
			return []string{err.Error()}
		}
		refuse = refuse || want.Invalid()
	}
	args := []string{"lint"}
	for _, need := range m.Needs {
		args = append(args, "-f", need)
	}
	out, err := program.Run(ctx, time.Minute, append(args, m.Path)...)
	if err != nil {
		return []string{err.Error()}
	}
	found := trouble(out)
	switch {
	case refuse && out.Exit != 2:
		found = append(found, fmt.Sprintf("exit code: want 2 since upstream refuses it, got %d", out.Exit))
	case refuse && len(out.Stderr)+len(out.Stdout) == 0:
		found = append(found, "refused without a word")
	case !refuse && out.Exit != 0:
		found = append(found, fmt.Sprintf("exit code: want 0, got %d: %s", out.Exit, out.Last(10)))
	}
	return found
}
