package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// A folder that is empty for tasks still shows what they need in it, each place once, whatever was mounted there.
func TestFreshFoldersKeepWhatTasksNeed(t *testing.T) {
	tmp := t.TempDir()
	for _, name := range []string{"home/envs", "tools/bin"} {
		if err := os.MkdirAll(filepath.Join(tmp, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := []spec.Layer{{Path: "/mnt", Bind: true}, {Path: tmp}, {Path: filepath.Join(tmp, "mounted"), Bind: true}, {Path: "/srv"}}
	got := withFresh(before, []string{tmp, "/no/such/folder"}, []string{
		filepath.Join(tmp, "home"), filepath.Join(tmp, "tools/bin"), filepath.Join(tmp, "home/envs"), filepath.Join(tmp, "missing"), "/usr/bin", "relative",
	})
	want := []spec.Layer{
		{Path: "/mnt", Bind: true}, {Path: tmp, Fresh: true}, {Path: filepath.Join(tmp, "home")}, {Path: filepath.Join(tmp, "tools/bin")}, {Path: "/srv"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Our own folder may be a link to where there is room.
func TestLinksAreFollowedToWhatTasksNeed(t *testing.T) {
	target, home := t.TempDir(), t.TempDir()
	if err := os.Symlink(target, filepath.Join(home, "envs")); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, folder := range folders(Config{Home: home}) {
		found[folder] = true
	}
	if !found[home] || !found[target] {
		t.Errorf("got %v, want %s and %s among them", found, home, target)
	}
}
