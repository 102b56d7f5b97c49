package verdict

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// row is a line of the document's table of differences: | suite | `file` | reason |.
var row = regexp.MustCompile("(?m)^\\| *(argo|kfp|kube|kube-kfp|lint) *\\| *`([^`]+)` *\\| *([^|]*?) *\\|$")

// Correction changes what an index says of a manifest, where that cannot be meant.
type Correction struct {
	// State is the final state to expect; Inputs the parameters to give, by name. Either may be empty.
	State  string
	Inputs map[string]any
}

// correction is a line of the document's table of corrections: | suite | `file` | `what=value` | reason |.
var correction = regexp.MustCompile("(?m)^\\| *(argo|kfp) *\\| *`([^`]+)` *\\| *`([a-z]+)=([^`]+)` *\\| *(.*?) *\\|$")

// ReadCorrections reads the table of corrections in a Markdown file, by suite and file joined by a blank. Each needs a
// reason.
func ReadCorrections(path string) (map[string]Correction, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the corrections: %w", err)
	}
	found := map[string]Correction{}
	for _, m := range correction.FindAllStringSubmatch(string(text), -1) {
		key := m[1] + " " + m[2]
		c := found[key]
		switch {
		case m[5] == "":
			return nil, fmt.Errorf("%s: the correction of %s has no reason", path, key)
		case m[3] == "state":
			c.State = m[4]
		case m[3] == "inputs":
			if err := json.Unmarshal([]byte(m[4]), &c.Inputs); err != nil {
				return nil, fmt.Errorf("%s: the correction of %s: %w", path, key, err)
			}
		default:
			return nil, fmt.Errorf("%s: the correction of %s changes %q; it may change state and inputs", path, key, m[3])
		}
		found[key] = c
	}
	return found, nil
}

// CheckDocument compares the table of remaining differences in a Markdown file with the results: every manifest that
// failed must stand in it with a reason, and none that passed. Manifests that were not run are not looked at.
func CheckDocument(path string, results []Result) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of differences: %w", err)
	}
	type key struct{ suite, file string }
	listed := map[key]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		listed[key{m[1], m[2]}] = m[3]
	}
	var found []string
	for _, r := range results {
		reason, there := listed[key{r.Suite, r.File}]
		switch {
		case r.Pass && there:
			found = append(found, fmt.Sprintf("%s lists %s %s, which passes: take it out", path, r.Suite, r.File))
		case !r.Pass && !there:
			found = append(found, fmt.Sprintf("%s lacks %s %s, which fails: mend it, or add it with a reason", path, r.Suite, r.File))
		case there && strings.TrimSpace(reason) == "":
			found = append(found, fmt.Sprintf("%s gives no reason for %s %s", path, r.Suite, r.File))
		}
	}
	slices.Sort(found)
	return found, nil
}
