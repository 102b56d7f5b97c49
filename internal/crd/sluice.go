package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema"
)

// hookSchema takes the spec of a hook from the JSON Schema of the documents that register hooks in local mode, which has
// the same limits and rules.
func hookSchema(s object) error {
	text, err := schema.Files.ReadFile("taskhook.json")
	if err != nil {
		return err
	}
	var whole object
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	spec, err := structural(in(whole, "$defs"), object{"$ref": "#/$defs/TaskHookSpec"})
	if err != nil {
		return err
	}
	in(s, "properties")["spec"] = spec
	// A path or a variable of the controller's own is not for those who may write a hook.
	source := spec
	for _, name := range []string{"http", "auth", "hmac", "secretFrom"} {
		source = in(in(source, "properties"), name)
	}
	delete(in(source, "properties"), "file")
	delete(in(source, "properties"), "env")
	delete(source, "oneOf")
	source["required"] = []string{"secretKeyRef"}
	return nil
}

// structural writes a JSON Schema as Kubernetes wants it: without references, and with unknown fields refused or
// dropped by the API server rather than by the schema.
func structural(defs, s object) (object, error) {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		def, ok := defs[name].(object)
		if !ok {
			return nil, fmt.Errorf("no definition %s", name)
		}
		out, err := structural(defs, def)
		if err == nil && s["description"] != nil {
			out["description"] = s["description"]
		}
		return out, err
	}
	out := maps.Clone(s)
	delete(out, "default") // it is the program's business, and must not be written into the user's object
	if out["additionalProperties"] == false {
		delete(out, "additionalProperties")
	}
	if out["type"] == nil {
		out["x-kubernetes-preserve-unknown-fields"] = true
		return out, nil
	}
	var err error
	if items, ok := out["items"].(object); ok {
		if out["items"], err = structural(defs, items); err != nil {
			return nil, err
		}
	}
	if values, ok := out["additionalProperties"].(object); ok {
		if out["additionalProperties"], err = structural(defs, values); err != nil {
			return nil, err
		}
	}
	if properties, ok := out["properties"].(object); ok {
		made := object{}
		for name, p := range properties {
			one, ok := p.(object)
			if !ok {
				return nil, fmt.Errorf("%s is no schema", name)
			}
			if made[name], err = structural(defs, one); err != nil {
				return nil, err
			}
		}
		out["properties"] = made
	}
	return out, nil
}

// journalSchema makes the data of a journal one thing as far as field managers go: their record of it must not grow with
// every key.
func journalSchema(s object) error {
	in(in(s, "properties"), "data")["x-kubernetes-map-type"] = "atomic"
	part := in(in(in(in(s, "properties"), "spec"), "properties"), "part")
	part["enum"] = []v1alpha1.RunJournalPart{v1alpha1.JournalEvents, v1alpha1.JournalState, v1alpha1.JournalBytes}
	return nil
}
