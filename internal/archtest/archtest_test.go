package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// packages asks the go command for every package of the module, with what it imports.
var packages = sync.OnceValues(func() ([]Package, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-e", "-deps=false", "-json=ImportPath,Dir,GoFiles,CgoFiles,Imports,Deps", Module+"/...")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New("go list: " + err.Error() + ": " + stderr.String())
	}
	var found []Package
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
})

func load(t *testing.T) ([]Package, []Source) {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	var sources []Source
	for _, p := range all {
		more, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, more...)
	}
	return all, sources
}

func report(t *testing.T, found []string) {
	t.Helper()
	for _, text := range found {
		t.Error(text)
	}
}

func TestImportsPointDownTheFlow(t *testing.T) {
	all, _ := load(t)
	report(t, CheckLayers(Layers(), all))
}

func TestBannedImports(t *testing.T) {
	all, _ := load(t)
	report(t, CheckBans(Bans(), all))
	report(t, CheckOnlys(Onlys(), all))
}

func TestCallsThatOnlySomeFoldersMake(t *testing.T) {
	_, sources := load(t)
	report(t, CheckUses(Uses(), sources))
	report(t, CheckSingle(Single(), sources))
}

func TestFileLengths(t *testing.T) {
	_, sources := load(t)
	found, warnings := CheckLines(sources)
	for _, text := range warnings {
		t.Log("warning: " + text)
	}
	report(t, found)
}

// The rules must be able to fail.
func TestRulesFindOffenders(t *testing.T) {
	layers := []Layer{{Folder: "internal/engine", May: []string{"internal/program"}}, {Folder: "internal/program"}}
	offender := []Package{
		{ImportPath: Module + "/internal/program", Imports: []string{"fmt", Module + "/internal/engine"}},
		{ImportPath: Module + "/internal/engine/sub", Imports: []string{Module + "/internal/engine", Module + "/internal/program", "os"}, Deps: []string{"os", "k8s.io/api/core/v1"}},
		{ImportPath: Module + "/internal/lost"},
	}
	source, err := parse("internal/engine", "x.go", []byte("package engine\nimport (\n\"os\"\nclock \"time\"\n\"math/rand/v2\"\n_ \"modernc.org/sqlite\"\n)\nvar _ = os.Getenv(\"X\")\nvar _ = clock.Now()\nvar _ = rand.IntN(3)\n"))
	if err != nil {
		t.Fatal(err)
	}
	long := Source{Folder: "internal/engine", Name: "long.go", Lines: HardLines + 1}
	tooLong, _ := CheckLines([]Source{long, {Lines: SoftLines + 1}})
	tests := map[string]struct {
		got  []string
		want []string
	}{
		"layers": {
			got:  CheckLayers(layers, offender),
			want: []string{"internal/program imports internal/engine", "internal/lost lies in no layer"},
		},
		"bans": {
			got: CheckBans([]Ban{
				{Folder: "internal/engine", Not: []string{"os"}, Direct: true, Why: "pure"},
				{Folder: "internal/engine", Not: []string{"k8s.io/..."}, Why: "small"},
			}, offender),
			want: []string{"internal/engine/sub uses os: pure", "internal/engine/sub uses k8s.io/api/core/v1: small"},
		},
		"only": {
			got: CheckOnlys(Onlys(), []Package{
				{ImportPath: Module + "/internal/hook", Imports: []string{"k8s.io/apimachinery/pkg/labels", "k8s.io/client-go/kubernetes"}},
				{ImportPath: Module + "/internal/backend/kube/endpoint", Imports: []string{"k8s.io/client-go/kubernetes"}},
			}),
			want: []string{"internal/hook imports k8s.io/client-go/kubernetes: "},
		},
		"uses": {
			got:  CheckUses(Uses(), []Source{source}),
			want: []string{"internal/engine/x.go:8 uses os.Getenv", "internal/engine/x.go:9 uses time.Now", "internal/engine/x.go:10 uses math/rand/v2.IntN"},
		},
		"single": {
			got:  CheckSingle(Single(), []Source{source, {Folder: "internal/store", Name: "s.go", Paths: []string{"modernc.org/sqlite"}}}),
			want: []string{"internal/engine/x.go imports modernc.org/sqlite, which only", "modernc.org/sqlite is imported by ["},
		},
		"lines": {got: tooLong, want: []string{"internal/engine/long.go has 801 lines"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if len(test.got) != len(test.want) {
				t.Fatalf("found %d offenders, want %d: %q", len(test.got), len(test.want), test.got)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(test.got[i], want) {
					t.Errorf("offender %d is %q, want it to start with %q", i, test.got[i], want)
				}
			}
		})
	}
}
