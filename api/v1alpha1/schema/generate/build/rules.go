package build

import "github.com/sluice-ml/sluice/api/v1alpha1"

// enums are the values of the text types that have only certain ones.
var enums = map[string][]string{
	"Point":         {"Pre", "Post"},
	"Scope":         {"Task", "Graph", "Workflow"},
	"Decision":      {"Run", "Reuse", "Skip", "Fail", "Done", "Retry"},
	"FailurePolicy": {"Fail", "Ignore"},
	"TemplateUse":   {"ByDigest", "Send"},
}

// limits are what the types do not say about single fields.
var limits = map[string]object{
	"TypeMeta.APIVersion":       {"const": v1alpha1.APIVersion},
	"ObjectMeta.Name":           {"pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
	"TaskReviewRequest.UID":     {"minLength": 1},
	"TaskReviewResponse.UID":    {"minLength": 1},
	"Pending.RetryAfterSeconds": {"exclusiveMinimum": 0, "maximum": v1alpha1.MaxRetryAfterSeconds},
	"TaskReviewResponse.Placeholders": {
		"propertyNames": object{"pattern": "^[A-Za-z0-9_-]+$"},
	},
	"TaskReviewResponse.PodPatch":       {"type": "object"},
	"TaskHookSpec.TimeoutSeconds":       {"minimum": 0, "maximum": 300, "default": 10},
	"TaskHookSpec.DeadlineSeconds":      {"minimum": 0, "default": 86400},
	"TaskHookSpec.MaxConcurrency":       {"minimum": 0, "maximum": 1000, "default": 8},
	"TaskHookSpec.Batch":                {"minimum": 0, "maximum": v1alpha1.MaxBatch},
	"TaskHookSpec.MaxRetries":           {"minimum": 0, "default": 1},
	"TaskHookSpec.FailurePolicy":        {"default": "Fail"},
	"RetryPolicy.Limit":                 {"minimum": 0, "maximum": 1000, "default": 5},
	"RetryBackoff.Factor":               {"minimum": 1, "maximum": 100, "default": 2},
	"RetryBackoff.Duration":             {"default": "1s"},
	"RetryBackoff.Cap":                  {"default": "1m"},
	"LabelSelectorRequirement.Operator": {"enum": []string{"In", "NotIn", "Exists", "DoesNotExist"}},
	"HTTPHook.URL":                      {"pattern": "^https?://[^/@]+"},
	"BuiltinHook.Name":                  {"enum": []string{"cache", "lineage"}},
	"Artifact.Size":                     {"minimum": 0},
	"Task.Attempt":                      {"minimum": 0},
}

// rules are what the types do not say about several fields together.
var rules = map[string]func(object){
	"TaskReviewRequest": func(s object) {
		s["if"] = object{"properties": object{"point": object{"const": "Post"}}}
		s["then"] = object{"required": []string{"result"}}
		s["else"] = object{"properties": object{"result": false, "state": false}}
	},
	"TaskReviewResponse": func(s object) {
		without := func(fields ...string) object {
			properties := object{}
			for _, f := range fields {
				properties[f] = false
			}
			return properties
		}
		decided := func(decision string, fields ...string) object {
			properties := without(append(fields, "pending")...)
			properties["decision"] = object{"const": decision}
			properties["template"] = object{"const": "ByDigest"}
			return object{"required": []string{"decision"}, "properties": properties}
		}
		undecided := []string{"decision", "placeholders", "inputs", "outputs", "labels", "annotations", "podPatch", "state"}
		pending, send := without(undecided...), without(append(undecided, "pending")...)
		pending["template"] = object{"const": "ByDigest"}
		send["template"] = object{"const": "Send"}
		s["oneOf"] = []object{
			decided("Run", "outputs"),
			decided("Reuse", "inputs", "podPatch"),
			decided("Skip", "inputs", "outputs", "podPatch"),
			decided("Fail", "inputs", "podPatch"),
			decided("Done", "placeholders", "inputs", "labels", "annotations", "podPatch", "state"),
			decided("Retry", "placeholders", "inputs", "outputs", "labels", "annotations", "podPatch", "state"),
			{"required": []string{"pending"}, "properties": pending},
			{"required": []string{"template"}, "properties": send},
		}
	},
	"TaskHookSpec": func(s object) {
		s["oneOf"] = []object{{"required": []string{"http"}}, {"required": []string{"container"}}, {"required": []string{"builtin"}}}
	},
	"HTTPHook": func(s object) {
		s["oneOf"] = []object{{"required": []string{"url"}}, {"required": []string{"service"}}}
	},
	"HTTPAuth": func(s object) {
		s["oneOf"] = []object{{"required": []string{"hmac"}}, {"required": []string{"serviceAccountToken"}}}
	},
	"SecretSource": func(s object) {
		s["oneOf"] = []object{{"required": []string{"file"}}, {"required": []string{"env"}}, {"required": []string{"secretKeyRef"}}}
	},
}
