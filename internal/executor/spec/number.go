package spec

import (
	"encoding/json"
	"math"

	"github.com/sluice-ml/sluice/internal/program"
)

// Whole gives a decoded JSON value with its whole numbers as int64, all through: the form that values have everywhere in
// this program. Numbers may be json.Number or float64.
func Whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String() // beyond what a float can be
		}
		return Whole(f)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v)
		}
	case map[string]any:
		for k, item := range v {
			v[k] = Whole(item)
		}
	case []any:
		for i, item := range v {
			v[i] = Whole(item)
		}
	}
	return v
}

// WholeArtifacts does the same for the metadata of artifacts.
func WholeArtifacts(byName map[string][]program.Artifact) {
	for _, list := range byName {
		for _, a := range list {
			for k, item := range a.Metadata {
				a.Metadata[k] = Whole(item)
			}
		}
	}
}
