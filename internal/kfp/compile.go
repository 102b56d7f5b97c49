package kfp

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sluice-ml/sluice/internal/program"
)

// Options are what a pipeline is compiled with.
type Options struct {
	// Parameters are the run's values for the root's inputs. They are checked against the declarations; the program
	// itself carries the defaults only.
	Parameters map[string]any
	// Artifacts are given to the root's input artifacts, as lists. They are checked only, as parameters are.
	Artifacts map[string][]program.Artifact
	// Lint leaves out the check that every required input has a value.
	Lint bool
}

// The scopes of template keys.
const (
	localScope    = "local"
	loopScope     = "loop"
	pipelineScope = "pipeline"
	rootName      = "root"
)

// compiler turns a checked pipeline into a program.
type compiler struct {
	pipeline  *Pipeline
	templates map[string]*program.Template
	// extra holds, by component, inputs that tasks give without the component declaring them: what placeholders in
	// constants and in resource settings refer to.
	extra map[string]map[string]bool
}

// Compile gives the program of a pipeline. An error is an [*InvalidError] with everything that is wrong with the options.
func (p *Pipeline) Compile(o Options) (*program.Program, error) {
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	c := &compiler{pipeline: p, templates: map[string]*program.Template{}, extra: p.extraInputs()}
	root := c.component(pipelineScope, rootName, p.Spec.Root, nil)
	entry := program.Call{
		Title:    p.Title(),
		Template: program.TemplateRef{Scope: pipelineScope, Name: rootName},
		Source:   toJSON(map[string]any{"pipelineInfo": p.rawAt("pipelineInfo")}),
	}
	for _, in := range root.Inputs.Parameters {
		entry.Arguments.Parameters = append(entry.Arguments.Parameters, program.Argument{
			Name: in.Name, From: program.Binding{Ref: "workflow.parameters." + in.Name},
		})
	}
	for _, a := range root.Inputs.Artifacts {
		entry.Arguments.Artifacts = append(entry.Arguments.Artifacts, program.Argument{
			Name: a.Name, From: program.Binding{Ref: "workflow.artifacts." + a.Name},
		})
	}
	config := p.Platform.Kubernetes.PipelineConfig
	out := &program.Program{
		Language:     "kfp",
		Name:         p.Spec.PipelineInfo.Name,
		Templates:    c.templates,
		Entry:        entry,
		Parameters:   rootParameters(root.Inputs.Parameters),
		Artifacts:    root.Inputs.Artifacts,
		Labels:       map[string]string{"pipelines.kubeflow.org/v2_component": "true"},
		Deadline:     config.ActiveDeadlineSeconds,
		ArtifactRoot: p.Spec.DefaultPipelineRoot,
	}
	return out, nil
}

// rootParameters are the run's: an optional one without default is null, as KFP has it.
func rootParameters(inputs []program.Input) []program.Input {
	out := make([]program.Input, len(inputs))
	copy(out, inputs)
	for i := range out {
		if out[i].Optional && out[i].Default == nil {
			out[i].Default = &program.Binding{Const: program.JSON("null")}
			if len(out[i].Allowed) > 0 {
				out[i].Allowed = append(slices.Clone(out[i].Allowed), nil)
			}
		}
	}
	return out
}

// component compiles a component and what it refers to, once for each scope.
func (c *compiler) component(scope, name string, spec *ComponentSpec, inherited *RetryPolicy) *program.Template {
	key := scope + "/" + name
	if t := c.templates[key]; t != nil {
		return t
	}
	t := &program.Template{
		Key: key, Name: name,
		Inputs:  c.inputs(name, spec),
		Outputs: program.Outputs{},
		Source:  c.componentSource(name, spec),
	}
	c.templates[key] = t
	if spec.Dag != nil {
		c.graph(t, spec, inherited)
		return t
	}
	c.executor(t, spec)
	return t
}

// componentSource is the author's own text: the component, and its executor and platform settings where it has them.
func (c *compiler) componentSource(name string, spec *ComponentSpec) program.JSON {
	out := map[string]any{"name": name}
	if spec.Dag == nil {
		out["component"] = c.pipeline.rawAt("components", name)
		out["executor"] = c.pipeline.rawAt("deploymentSpec", "executors", spec.ExecutorLabel)
		if m, ok := c.pipeline.Platform.Platforms["kubernetes"].JSON.(map[string]any); ok {
			if d, ok := m["deploymentSpec"].(map[string]any); ok {
				if e, ok := d["executors"].(map[string]any); ok && e[spec.ExecutorLabel] != nil {
					out["kubernetes"] = e[spec.ExecutorLabel]
				}
			}
		}
	}
	return toJSON(out)
}

// inputs declares a component's inputs, and those that its tasks are given besides.
func (c *compiler) inputs(name string, spec *ComponentSpec) program.Inputs {
	var out program.Inputs
	defs := spec.InputDefinitions
	for _, n := range sortedKeys(defs.Parameters) {
		d := defs.Parameters[n]
		in := program.Input{
			Name: n, Type: program.Type(parameterType(d.ParameterType, d.Type)), Optional: d.IsOptional || d.DefaultValue != nil,
			Description: d.Description,
		}
		if d.DefaultValue != nil && d.DefaultValue.JSON != nil {
			in.Default = &program.Binding{Const: toJSON(d.DefaultValue.JSON)}
		}
		if in.Type == program.Config {
			in.Optional = true
		}
		if in.Type == program.FinalStatus && in.Default == nil {
			// The system fills it. Where no task is named whose end it could be, nothing has failed so far.
			in.Optional = true
			in.Default = &program.Binding{Expr: `{"state":"SUCCEEDED","error":{},"pipelineJobResourceName":"{{$.pipeline_job_resource_name}}","pipelineTaskName":""}`}
		}
		for _, l := range d.Literals {
			in.Allowed = append(in.Allowed, l.JSON)
		}
		out.Parameters = append(out.Parameters, in)
	}
	for _, n := range sortedKeys(c.extra[name]) {
		out.Parameters = append(out.Parameters, program.Input{Name: n, Optional: true})
	}
	for _, n := range sortedKeys(defs.Artifacts) {
		d := defs.Artifacts[n]
		out.Artifacts = append(out.Artifacts, program.InputArtifact{
			Name: n, Type: d.ArtifactType.title(), List: d.IsArtifactList, Optional: d.IsOptional,
		})
	}
	return out
}

// extraInputs finds the inputs that tasks give to components which do not declare them, by component.
func (p *Pipeline) extraInputs() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	dags := maps.Clone(p.Spec.Components)
	if dags == nil {
		dags = map[string]*ComponentSpec{}
	}
	dags[""] = p.Spec.Root
	for _, spec := range dags {
		if spec == nil || spec.Dag == nil {
			continue
		}
		for _, task := range spec.Dag.Tasks {
			target := p.Spec.Components[task.ComponentRef.Name]
			for name := range task.Inputs.Parameters {
				if target != nil && target.InputDefinitions.Parameters[name] == nil {
					if out[task.ComponentRef.Name] == nil {
						out[task.ComponentRef.Name] = map[string]bool{}
					}
					out[task.ComponentRef.Name][name] = true
				}
			}
		}
	}
	return out
}

// toJSON writes a JSON value; nil for one that is none.
func toJSON(v any) program.JSON {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
