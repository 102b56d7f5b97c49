package kfp

import (
	"maps"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// The files by which a task and KFP's own code in it talk to each other.
const (
	parameterFolder = "/tmp/kfp/outputs/"
	outputFile      = "{{$.outputs.output_file}}"
	mainContainer   = "main"
)

// executor compiles a component that something runs.
func (c *compiler) executor(t *program.Template, spec *ComponentSpec) {
	t.Outputs = taskOutputs(spec)
	e := c.pipeline.Spec.DeploymentSpec.Executors[spec.ExecutorLabel]
	switch {
	case e.Importer != nil:
		t.Task = importer(spec, e.Importer)
	case claimAction(e.Container) != "":
		claim(t, e.Container)
	default:
		t.Task = container(e.Container)
		c.platform(t, spec)
	}
}

// taskOutputs declares what a task leaves: parameters as files, artifacts where the language places them. An artifact
// whose file is missing is still an artifact: some are only metadata.
func taskOutputs(spec *ComponentSpec) program.Outputs {
	var out program.Outputs
	defs := spec.OutputDefinitions
	for _, n := range sortedKeys(defs.Parameters) {
		d := defs.Parameters[n]
		out.Parameters = append(out.Parameters, program.Output{
			Name: n, Type: program.Type(parameterType(d.ParameterType, d.Type)), Path: parameterFolder + n,
		})
	}
	for _, n := range sortedKeys(defs.Artifacts) {
		d := defs.Artifacts[n]
		out.Artifacts = append(out.Artifacts, program.OutputArtifact{
			Name: n, Type: d.ArtifactType.title(), List: d.IsArtifactList, Optional: true, Metadata: outputMetadata(d), Archive: "none",
		})
	}
	return out
}

// outputMetadata is what the author declared, the deprecated properties included.
func outputMetadata(d *OutputArtifact) map[string]any {
	out := map[string]any{}
	for _, props := range []map[string]ValueOrRuntime{d.Properties, d.CustomProperties} {
		for k, v := range props {
			if c := v.constant(); c != nil {
				out[k] = c.JSON
			}
		}
	}
	maps.Copy(out, d.Metadata)
	if len(out) == 0 {
		return nil
	}
	return out
}

// container compiles a command in an image.
func container(spec *ContainerSpec) *program.Body {
	main := program.Container{
		Name: mainContainer, Image: spec.Image, Command: spec.Command, Args: spec.Args,
		CPULimit:    quantity(spec.Resources.ResourceCPULimit, spec.Resources.CPULimit, ""),
		MemoryLimit: quantity(spec.Resources.ResourceMemoryLimit, spec.Resources.MemoryLimit, "G"),
	}
	// Command and arguments are left out: Raw's texts are resolved one by one, and an argument may become several.
	raw := map[string]any{"name": mainContainer, "image": spec.Image}
	var env []any
	for _, e := range spec.Env {
		main.Env = append(main.Env, program.EnvVar{Name: e.Name, Value: e.Value})
		env = append(env, map[string]any{"name": e.Name, "value": e.Value})
	}
	if env != nil {
		raw["env"] = env
	}
	if r := resources(spec.Resources); r != nil {
		raw["resources"] = r
	}
	main.Raw = toJSON(raw)
	body := &program.Body{
		Kind: program.Containers, Containers: []program.Container{main}, ExecutorOutput: outputFile,
	}
	body.Requirements, body.PythonCommand = pythonEnvironment(spec.Command)
	return body
}

// quantity gives a resource as Kubernetes writes it, from its text or its deprecated number.
func quantity(text string, number float64, unit string) string {
	if text != "" || number == 0 {
		return text
	}
	return strconv.FormatFloat(number, 'f', -1, 64) + unit
}

// resources gives a container's resources in Kubernetes' form; nil for none.
func resources(r Resources) map[string]any {
	limits, requests := map[string]any{}, map[string]any{}
	set := func(m map[string]any, name, value string) {
		if value != "" {
			m[name] = value
		}
	}
	set(limits, "cpu", quantity(r.ResourceCPULimit, r.CPULimit, ""))
	set(limits, "memory", quantity(r.ResourceMemoryLimit, r.MemoryLimit, "G"))
	set(requests, "cpu", quantity(r.ResourceCPURequest, r.CPURequest, ""))
	set(requests, "memory", quantity(r.ResourceMemoryRequest, r.MemoryRequest, "G"))
	if a := r.Accelerator; a != nil {
		kind, count := a.ResourceType, a.ResourceCount
		if kind == "" {
			kind = a.Type
		}
		if count == "" && a.Count != 0 {
			count = strconv.FormatInt(a.Count, 10)
		}
		if kind != "" && count != "" && count != "0" {
			limits[kind] = count
		}
	}
	out := map[string]any{}
	if len(limits) > 0 {
		out["limits"] = limits
	}
	if len(requests) > 0 {
		out["requests"] = requests
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// importer compiles what records an artifact that lies somewhere. Its one output is the artifact.
func importer(spec *ComponentSpec, imp *ImporterSpec) *program.Body {
	out := &program.Import{Type: imp.TypeSchema.title(), Reimport: imp.Reimport, Output: "artifact"}
	if names := sortedKeys(spec.OutputDefinitions.Artifacts); len(names) > 0 {
		out.Output = names[0]
	}
	switch {
	case imp.ArtifactURI.RuntimeParameter != "":
		out.URI = program.Binding{Ref: "inputs.parameters." + imp.ArtifactURI.RuntimeParameter}
	case imp.ArtifactURI.constant() != nil:
		s, _ := imp.ArtifactURI.constant().JSON.(string)
		out.URI = program.Binding{Text: &s}
	}
	metadata := map[string]any{}
	for _, props := range []map[string]ValueOrRuntime{imp.Properties, imp.CustomProperties} {
		for k, v := range props {
			switch {
			case v.RuntimeParameter != "":
				metadata[k] = "{{$.inputs.parameters['" + v.RuntimeParameter + "']}}"
			case v.constant() != nil:
				metadata[k] = v.constant().JSON
			}
		}
	}
	maps.Copy(metadata, imp.Metadata)
	if len(metadata) > 0 {
		out.Metadata = metadata
	}
	body := &program.Body{Kind: program.Importer, Import: out}
	if imp.DownloadToWorkspace {
		// The importer's own output says so, and every task that takes it mounts the workspace.
		if out.Metadata == nil {
			out.Metadata = map[string]any{}
		}
		out.Metadata["_kfp_workspace"] = true
		mountWorkspace(body)
	}
	return body
}

// usesWorkspace says whether a component's own texts name the workspace.
func usesWorkspace(spec *ContainerSpec) bool {
	texts := append(append([]string{}, spec.Command...), spec.Args...)
	for _, e := range spec.Env {
		texts = append(texts, e.Value)
	}
	for _, s := range texts {
		if strings.Contains(s, "{{$.workspace_path}}") || strings.Contains(s, workspacePath) {
			return true
		}
	}
	return false
}
