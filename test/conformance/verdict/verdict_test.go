package verdict

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func report() *Report {
	r := &Report{}
	r.Add(Result{Suite: "kfp", File: "b", Class: "local", Pass: true})
	r.Add(Result{Suite: "argo", File: "a", Class: "local", Reason: "phase"})
	r.Add(Result{Suite: "argo", File: "c", Class: "local", Pass: true})
	r.Add(Result{Suite: "argo", File: "d", Class: "suspend", Pass: true})
	return r
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	if report().Print(&out, "conformance", 95) {
		t.Error("half of a class passed, and that is enough for 95%")
	}
	for _, want := range []string{
		"LOW argo  local            1 of   2 passed (50.0%)", "    argo  suspend          1 of   1 passed (100.0%)",
		"conformance-argo: 2 passed, 1 failed, 0 skipped (66.7% of at least 95%)", "conformance-kfp: 1 passed, 0 failed, 0 skipped",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
	if !report().Print(&out, "conformance", 50) {
		t.Error("half of a class passed, and that is not enough for 50%")
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "build", "report.json")
	if err := report().Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report().Results(), got); diff != "" {
		t.Error(diff)
	}
	if got[0].File != "a" || got[3].File != "b" {
		t.Errorf("not sorted: %v", got)
	}
}

func TestCheckDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conformance.md")
	text := "# Differences\n\n| suite | file | reason |\n|---|---|---|\n| argo | `c` | was wrong once |\n| kfp | `gone` | not run |\n| kfp | `b` | `state=X` | a correction is no difference |\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := CheckDocument(path, report().Results())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		path + " lacks argo a, which fails: mend it, or add it with a reason",
		path + " lists argo c, which passes: take it out",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

// The differences of every suite can be listed.
func TestCheckDocumentSuites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conformance.md")
	var text string
	var results []Result
	for _, suite := range []string{"argo", "kfp", "kube", "kube-kfp", "lint"} {
		text += "| " + suite + " | `a.yaml` | it cannot pass |\n"
		results = append(results, Result{Suite: suite, File: "a.yaml"})
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := CheckDocument(path, results)
	if err != nil || len(found) > 0 {
		t.Errorf("%v: %q", err, found)
	}
}

func TestReadCorrections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conformance.md")
	read := func(rows string) (map[string]Correction, error) {
		if err := os.WriteFile(path, []byte("| suite | file | change | reason |\n|---|---|---|---|\n"+rows), 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadCorrections(path)
	}
	got, err := read("| kfp | `a.yaml` | `state=FAILED` | it must |\n| kfp | `a.yaml` | `inputs={\"n\": 2}` | shorter |\n| argo | `b.yaml` | not one of them |\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Correction{"kfp a.yaml": {State: "FAILED", Inputs: map[string]any{"n": 2.0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, row := range []string{"| kfp | `a.yaml` | `state=FAILED` |  |\n", "| kfp | `a.yaml` | `phase=x` | why |\n", "| kfp | `a.yaml` | `inputs=x` | why |\n"} {
		if got, err := read(row); err == nil {
			t.Errorf("%q gave %v, want an error", row, got)
		}
	}
}
