package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestImporterTakesDescriptions(t *testing.T) {
	folder := program.JSON(`{"folder":{"path":"/data/m"}}`)
	tests := map[string]struct {
		uri  string
		imp  program.Import
		want program.Artifact
	}{
		"our form": {
			uri:  `{"uri":"/data/m","type":"system.Model","metadata":{"a":1},"store":{"folder":{"path":"/data/m"}}}`,
			want: program.Artifact{Name: "artifact", URI: "/data/m", Type: "system.Model", Metadata: map[string]any{"a": 1.0}, Store: folder},
		},
		"KFP's form, with more metadata": {
			uri:  ` {"name":"x","uri":"/data/m","type":{"schemaTitle":"system.Model"},"metadata":{"a":"b"}}`,
			imp:  program.Import{Metadata: map[string]any{"c": "d"}},
			want: program.Artifact{Name: "artifact", URI: "/data/m", Type: "system.Model", Metadata: map[string]any{"a": "b", "c": "d"}, Store: folder},
		},
		"the importer's own type counts": {
			uri:  `{"uri":"/data/m","type":"system.Artifact"}`,
			imp:  program.Import{Type: "system.Dataset"},
			want: program.Artifact{Name: "artifact", URI: "/data/m", Type: "system.Dataset", Store: folder},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.imp.URI, test.imp.Output = program.Binding{Text: &test.uri}, "artifact"
			result := importer(engine.StartTask{Body: program.Body{Kind: program.Importer, Import: &test.imp}})
			if result.Phase != engine.SucceededPhase {
				t.Fatalf("ended as %s: %s", result.Phase, result.Message)
			}
			if diff := cmp.Diff([]program.Artifact{test.want}, result.Outputs.Artifacts["artifact"]); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, uri := range []string{"{", `{"type":"system.Model"}`} {
		imp := program.Import{URI: program.Binding{Text: &uri}, Output: "artifact"}
		if result := importer(engine.StartTask{Body: program.Body{Import: &imp}}); result.Phase != engine.ErrorPhase {
			t.Errorf("%s: ended as %s, want Error", uri, result.Phase)
		}
	}
}
