package hook

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema"
)

var block = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([a-zA-Z-]+))?\n(.*?)^```$")

// Every example in the documentation is what it says: it decodes, fits its schema, loads, or is a condition.
func TestDocumentationIsTrue(t *testing.T) {
	data, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	uids := regexp.MustCompile(`"uid": "([^"]+)"`)
	seen := map[string]int{}
	for _, m := range block.FindAllStringSubmatch(string(data), -1) {
		language, what, text := m[1], m[2], m[3]
		seen[language+" "+what]++
		var err error
		switch language + " " + what {
		case "json request":
			_, err = v1alpha1.DecodeReview([]byte(text), v1alpha1.RefuseUnknown)
			checkSchema(t, "review-request.json", text)
		case "json Pre", "json Post":
			_, err = v1alpha1.DecodeResponse([]byte(text), v1alpha1.Point(what), uids.FindStringSubmatch(text)[1])
			checkSchema(t, "review-response.json", text)
		case "json list-request":
			_, err = v1alpha1.DecodeReviewList([]byte(text), v1alpha1.RefuseUnknown)
			checkSchema(t, "review-list-request.json", text)
		case "json list-response":
			var answers map[string]v1alpha1.ListAnswer
			answers, err = v1alpha1.DecodeResponseList([]byte(text), map[string]v1alpha1.Point{"a": v1alpha1.Pre, "b": v1alpha1.Pre})
			if answers["b"].Err != nil || answers["a"].Err == nil {
				t.Errorf("list: %+v", answers)
			}
			checkSchema(t, "review-list-response.json", text)
		case "yaml taskhook":
			_, err = LoadFile("docs/hooks.md", []byte(text))
		case "cel ":
			for condition := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
				if err := CheckCondition(condition); err != nil {
					t.Errorf("%s: %v", condition, err)
				}
			}
		case "json ":
			t.Errorf("a JSON example that does not say what it is:\n%s", text)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for what, least := range map[string]int{"json request": 2, "json Pre": 4, "json Post": 1, "json list-request": 1, "json list-response": 1, "yaml taskhook": 2, "cel ": 1} {
		if seen[what] < least {
			t.Errorf("%d examples of %q", seen[what], what)
		}
	}
}

func checkSchema(t *testing.T, name, text string) {
	t.Helper()
	data, err := schema.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
}
