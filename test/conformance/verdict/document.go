package verdict

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// row is a line of the document's table of differences: | suite | `file` | reason |.
var row = regexp.MustCompile("(?m)^\\| *(argo|kfp|lint) *\\| *`([^`]+)` *\\| *(.*?) *\\|$")

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
