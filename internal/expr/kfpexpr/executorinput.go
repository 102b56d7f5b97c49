package kfpexpr

import (
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// HiddenInput is the prefix of inputs that a front end adds to a template for itself; the task's own code does not see
// them in its ExecutorInput.
const HiddenInput = "sluice--"

// fallbackOutputFile is where a task without output artifacts writes its output metadata.
const fallbackOutputFile = "/tmp/kfp_outputs/output_metadata.json"

// executorInput builds KFP's ExecutorInput from a task's scope. Inputs without a value, or null, are left out.
func executorInput(env expr.Env) map[string]any {
	inputs := map[string]any{}
	parameters := map[string]any{}
	for name, v := range lookupMap(env, "inputs", "parameters") {
		if v != nil && !strings.HasPrefix(name, HiddenInput) {
			parameters[name] = normalise(v)
		}
	}
	if len(parameters) > 0 {
		inputs["parameterValues"] = parameters
	}
	if lists := artifactLists(lookupArtifacts(env, "inputs")); len(lists) > 0 {
		inputs["artifacts"] = lists
	}
	outputs := map[string]any{"outputFile": outputFile(env)}
	files := map[string]any{}
	for name, v := range lookupMap(env, "outputs", "parameters") {
		if p := outputPath(v); p != "" {
			files[name] = map[string]any{"outputFile": p}
		}
	}
	if len(files) > 0 {
		outputs["parameters"] = files
	}
	if lists := artifactLists(lookupArtifacts(env, "outputs")); len(lists) > 0 {
		outputs["artifacts"] = lists
	}
	return map[string]any{"inputs": inputs, "outputs": outputs}
}

func artifactLists(byName map[string][]program.Artifact) map[string]any {
	out := make(map[string]any, len(byName))
	for name, list := range byName {
		if len(list) == 0 {
			continue
		}
		items := make([]any, len(list))
		for i, a := range list {
			items[i] = runtimeArtifact(a)
		}
		out[name] = map[string]any{"artifacts": items}
	}
	return out
}

// outputFile is where the task writes its output metadata: beside its output artifacts, because the SDK takes that folder
// for the task's own root in the store (dsl.get_uri).
func outputFile(env expr.Env) string {
	outputs := lookupArtifacts(env, "outputs")
	for _, name := range sortedKeys(outputs) {
		if list := outputs[name]; len(list) > 0 && list[0].URI != "" {
			if p := pathOf(list[0].URI); path.IsAbs(p) {
				return path.Join(path.Dir(p), "output_metadata.json")
			}
		}
	}
	return fallbackOutputFile
}

// lookupMap reads a map of the scope.
func lookupMap(env expr.Env, steps ...string) map[string]any {
	v, presence := env.Lookup(steps)
	if presence != expr.Present {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		return v
	case map[string]string:
		out := make(map[string]any, len(v))
		for k, s := range v {
			out[k] = s
		}
		return out
	}
	return nil
}

// lookupArtifacts reads all artifacts of the task's inputs or outputs.
func lookupArtifacts(env expr.Env, side string) map[string][]program.Artifact {
	v, presence := env.Lookup([]string{side, "artifacts"})
	if presence != expr.Present {
		return nil
	}
	switch v := v.(type) {
	case map[string][]program.Artifact:
		return v
	case map[string]any:
		out := make(map[string][]program.Artifact, len(v))
		for name, e := range v {
			if list := asArtifacts(e); list != nil {
				out[name] = list
			}
		}
		return out
	}
	return nil
}

// outputPath reads where an output parameter is to be written.
func outputPath(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		s, _ := v["path"].(string)
		return s
	case map[string]string:
		return v["path"]
	}
	return ""
}
