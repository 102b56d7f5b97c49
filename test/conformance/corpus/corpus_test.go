package corpus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "argo", "index.tsv"), "file\tclass\tphase\tneeds\twhy\nexamples/a.yaml\tlocal\tSucceeded (random)\tx.yaml y.yaml\t\n")
	write(t, filepath.Join(root, "kfp", "index.tsv"), "file\tclass\tstate\tinputs\toutputs\tfeatures\nvalid/b.yaml\tpip\tSUCCEEDED (fails upstream)\t{\"n\": 1}\t{}\tcond\n")
	got, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	argo, kfp := filepath.Join(root, "argo"), filepath.Join(root, "kfp")
	want := []Suite{
		{Name: "argo", Folder: argo, Bin: filepath.Join(argo, "bin"), Manifests: []Manifest{{
			Suite: "argo", File: "examples/a.yaml", Path: filepath.Join(argo, "examples/a.yaml"), Class: "local", State: "Succeeded", Random: true,
			Needs: []string{filepath.Join(argo, "x.yaml"), filepath.Join(argo, "y.yaml")},
		}}},
		{Name: "kfp", Folder: kfp, Bin: filepath.Join(kfp, "bin"), Manifests: []Manifest{{
			Suite: "kfp", File: "valid/b.yaml", Path: filepath.Join(kfp, "valid/b.yaml"), Class: "pip", State: "SUCCEEDED",
			Inputs: map[string]any{"n": 1.0}, Outputs: map[string]any{},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := got[0].Manifests[0].ExpectedPath(), filepath.Join(argo, "expected", "examples__a.yaml.json"); got != want {
		t.Errorf("expected path %s, want %s", got, want)
	}
}
