package pod

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/internal/engine"
)

var update = flag.Bool("update", false, "write the pods that are made into testdata")

func testConfig() Config {
	return Config{
		ExecutorImage: "sluice-executor:test", ImagePullPolicy: corev1.PullIfNotPresent, Endpoint: "https://sluice.sluice:8443", CA: "pem",
		Grace: 20 * time.Second, Instance: "one", Labels: map[string]string{"team": "ml"},
		Executor:   corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}},
		ImageTable: map[string]Image{"argoproj/argosay:v2": {Entrypoint: []string{"/argosay"}}, "named:1": {Cmd: []string{"serve"}, User: "1000:5"}},
	}
}

// noImages is a world without a registry.
type noImages struct{}

func (noImages) Image(context.Context, string, []string, string, string) (Image, error) {
	return Image{}, errors.New("no registry")
}

// TestGolden compiles each manifest of testdata and compares the pods of its tasks with those in the same file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := archive.Files[0]
			want := txtar.Archive{Comment: archive.Comment, Files: archive.Files[:1]}
			m := manifest{name: in.Name, data: in.Data}
			var answer *engine.Answer
			if len(archive.Files) > 1 && archive.Files[1].Name == "answer.json" {
				want.Files = archive.Files[:2]
				answer = &engine.Answer{Decision: engine.DecideRun, PodPatch: bytes.TrimSpace(archive.Files[1].Data)}
			}
			simulate(t, m, answer, func(run engine.Run, cmd engine.StartTask) {
				want.Files = append(want.Files[:len(want.Files):len(want.Files)], txtar.File{Name: Name(cmd), Data: shown(t, run, cmd)})
			})
			got := txtar.Format(&want)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(got)); diff != "" {
				t.Errorf("run with -update and look at the difference (-want +got):\n%s", diff)
			}
		})
	}
}

// shown is a pod as YAML, or why there is none.
func shown(t *testing.T, run engine.Run, cmd engine.StartTask) []byte {
	t.Helper()
	objects, err := Build(t.Context(), testConfig(), run, cmd, noImages{})
	if err != nil {
		return fmt.Appendf(nil, "error: %v\n", err)
	}
	objects.Pod.TypeMeta.Kind = "Pod"
	out, err := yaml.Marshal(objects.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if objects.Config != nil {
		more, err := yaml.Marshal(objects.Config)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, "---\n"...), more...)
	}
	for _, v := range Check(objects.Pod) {
		out = fmt.Appendf(out, "# not restricted: %s\n", v)
	}
	return out
}
