package kfp

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// binder compiles the inputs of one task into the arguments of its call.
type binder struct {
	compiler *compiler
	// owner is the key of the template that the task stands in.
	owner  string
	task   string
	spec   *TaskSpec
	target *ComponentSpec
}

// arguments gives the call's arguments.
func (b *binder) arguments() program.Arguments {
	var out program.Arguments
	for _, n := range sortedKeys(b.spec.Inputs.Parameters) {
		if d := b.target.InputDefinitions.Parameters[n]; d != nil && parameterType(d.ParameterType, d.Type) == string(program.Config) {
			continue
		}
		out.Parameters = append(out.Parameters, program.Argument{Name: n, From: b.tolerant(n, b.parameter(b.spec.Inputs.Parameters[n]))})
	}
	out.Parameters = append(out.Parameters, b.platformArguments()...)
	if it := b.spec.ParameterIterator; it != nil {
		out.Parameters = append(out.Parameters, program.Argument{Name: it.ItemInput, From: program.Binding{Ref: "item"}})
	}
	for _, n := range sortedKeys(b.spec.Inputs.Artifacts) {
		out.Artifacts = append(out.Artifacts, program.Argument{Name: n, From: artifactBinding(b.spec.Inputs.Artifacts[n])})
	}
	if it := b.spec.ArtifactIterator; it != nil {
		out.Artifacts = append(out.Artifacts, program.Argument{Name: it.ItemInput, From: program.Binding{Ref: "item"}})
	}
	return out
}

// tolerant lets a task that runs after a failure do without what the failed task would have given, where the component
// has a default or can do without.
func (b *binder) tolerant(name string, from program.Binding) program.Binding {
	d := b.target.InputDefinitions.Parameters[name]
	if b.spec.TriggerPolicy.Strategy != allCompleted || d == nil || !d.IsOptional && d.DefaultValue == nil ||
		b.spec.Inputs.Parameters[name].TaskOutputParameter == nil {
		return from
	}
	from.Default = &program.Binding{Const: program.JSON("null")}
	if d.DefaultValue != nil {
		from.Default.Const = toJSON(d.DefaultValue.JSON)
	}
	return from
}

// parameter compiles an input parameter.
func (b *binder) parameter(p *TaskParameter) program.Binding {
	var out program.Binding
	switch {
	case p.TaskOutputParameter != nil:
		out = outputParameter(p.TaskOutputParameter.ProducerTask, p.TaskOutputParameter.OutputParameterKey)
	case p.ComponentInputParameter != "":
		out = program.Binding{Ref: "inputs.parameters." + p.ComponentInputParameter}
	case p.TaskFinalStatus != nil:
		out = program.Binding{Expr: string(toJSON("{{$.final_status['" + finalTask(b.spec, p) + "']}}"))}
	case p.RuntimeValue != nil && p.RuntimeValue.RuntimeParameter != "":
		out = program.Binding{Ref: "inputs.parameters." + p.RuntimeValue.RuntimeParameter}
	case p.RuntimeValue != nil && p.RuntimeValue.constant() != nil:
		out = b.constant(p.RuntimeValue.constant().JSON)
	default:
		out = program.Binding{Const: program.JSON("null")}
	}
	out.Select = p.ExpressionSelector
	return out
}

// finalTask names the task whose end an input asks for: the one given, else the first that the task waits for. It is empty
// for an input that asks for no task's end.
func finalTask(t *TaskSpec, p *TaskParameter) string {
	switch {
	case p.TaskFinalStatus == nil:
		return ""
	case p.TaskFinalStatus.ProducerTask != "":
		return p.TaskFinalStatus.ProducerTask
	case len(t.DependentTasks) > 0:
		return t.DependentTasks[0]
	}
	return ""
}

// constant compiles a constant: as it is where it has no placeholders, else an expression that resolves them. A
// placeholder for an input means the task's own, so it becomes what that input is bound to.
func (b *binder) constant(v any) program.Binding {
	resolved, changed := b.rewrite(v)
	if !changed {
		return program.Binding{Const: toJSON(v)}
	}
	return program.Binding{Expr: string(toJSON(resolved))}
}

// rewrite replaces placeholders in all texts of a JSON value. Changed says whether there are any.
func (b *binder) rewrite(v any) (out any, changed bool) {
	switch v := v.(type) {
	case string:
		s, ch := b.rewriteText(v)
		return s, ch
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			r, ch := b.rewrite(e)
			list[i], changed = r, changed || ch
		}
		return list, changed
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			key, kch := b.rewriteText(k)
			r, ch := b.rewrite(e)
			m[key], changed = r, changed || ch || kch
		}
		return m, changed
	}
	return v, false
}

func (b *binder) rewriteText(s string) (string, bool) {
	changed := false
	out := kfpexpr.Rewrite(s, func(steps []string) (string, bool) {
		r, ok := b.placeholder(steps)
		changed = changed || ok || isRuntime(steps)
		return r, ok
	})
	return out, changed
}

// isRuntime says whether a placeholder means the same in the caller's scope.
func isRuntime(steps []string) bool {
	if len(steps) != 1 {
		return len(steps) > 1 && (steps[0] == "hooks" || steps[0] == "tasks")
	}
	switch steps[0] {
	case "pipeline_job_name", "pipeline_job_resource_name", "pipeline_job_uuid", "pipeline_job_create_time_utc",
		"pipeline_job_schedule_time_utc", "pipeline_root", "workspace_path":
		return true
	}
	return false
}

// placeholder gives what stands for a placeholder in the caller's scope.
func (b *binder) placeholder(steps []string) (string, bool) {
	switch {
	case len(steps) == 1 && steps[0] == "pipeline_task_name":
		return constPlaceholder(b.task), true
	case len(steps) == 1 && steps[0] == "pipeline_task_uuid":
		return bracket("call_uid", b.task), true
	case len(steps) == 3 && steps[0] == "inputs" && steps[1] == "parameters":
		if it := b.spec.ParameterIterator; it != nil && it.ItemInput == steps[2] {
			return bracket("scope", "item"), true
		}
		p := b.spec.Inputs.Parameters[steps[2]]
		if p == nil {
			return "", false
		}
		return b.bound(p)
	case len(steps) >= 4 && steps[0] == "inputs" && steps[1] == "artifacts":
		return b.boundArtifact(steps)
	}
	return "", false
}

// bound gives a placeholder for what an input of the task is bound to.
func (b *binder) bound(p *TaskParameter) (string, bool) {
	var inner string
	switch {
	case p.TaskOutputParameter != nil:
		inner = bracket("scope", "tasks", p.TaskOutputParameter.ProducerTask, "outputs", "parameters", p.TaskOutputParameter.OutputParameterKey)
	case p.ComponentInputParameter != "":
		inner = bracket("scope", "inputs", "parameters", p.ComponentInputParameter)
	case p.TaskFinalStatus != nil:
		inner = bracket("final_status", finalTask(b.spec, p))
	case p.RuntimeValue != nil && p.RuntimeValue.constant() != nil:
		c := p.RuntimeValue.constant().JSON
		if s, ok := c.(string); ok && len(kfpexpr.Placeholders(s)) == 1 && strings.HasPrefix(s, "{{$") && strings.HasSuffix(s, "}}") {
			// A constant that is one placeholder for the run stands for itself; one for an input would be a second
			// step, which the SDK does not write.
			if steps := kfpexpr.Placeholders(s)[0]; isRuntime(steps) {
				return s, true
			}
		}
		inner = constPlaceholder(c)
	default:
		return "", false
	}
	if p.ExpressionSelector != "" {
		inner = "{{$.select['" + url.QueryEscape(p.ExpressionSelector) + "']" + inner[len("{{$"):]
	}
	return inner, true
}

// boundArtifact does the same for {{$.inputs.artifacts['x'].uri}} and its like in a constant.
func (b *binder) boundArtifact(steps []string) (string, bool) {
	a := b.spec.Inputs.Artifacts[steps[2]]
	switch {
	case a == nil:
		return "", false
	case a.TaskOutputArtifact != nil:
		return bracket("scope", append([]string{"tasks", a.TaskOutputArtifact.ProducerTask, "outputs", "artifacts",
			a.TaskOutputArtifact.OutputArtifactKey}, steps[3:]...)...), true
	case a.ComponentInputArtifact != "":
		return bracket("scope", append([]string{"inputs", "artifacts", a.ComponentInputArtifact}, steps[3:]...)...), true
	}
	return "", false
}

// bracket writes a placeholder with quoted steps.
func bracket(first string, steps ...string) string {
	var b strings.Builder
	b.WriteString("{{$." + first)
	for _, s := range steps {
		b.WriteString("['" + s + "']")
	}
	b.WriteString("}}")
	return b.String()
}

func constPlaceholder(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	return bracket("const", url.QueryEscape(string(raw)))
}

func artifactBinding(a *TaskArtifact) program.Binding {
	if a.TaskOutputArtifact != nil {
		return outputArtifact(a.TaskOutputArtifact.ProducerTask, a.TaskOutputArtifact.OutputArtifactKey)
	}
	return program.Binding{Ref: "inputs.artifacts." + a.ComponentInputArtifact}
}

// loop compiles the task's iterator; nil for none.
func (b *binder) loop() *program.Loop {
	loop := &program.Loop{Parallelism: b.spec.IteratorPolicy.ParallelismLimit}
	switch {
	case b.spec.ArtifactIterator != nil:
		from := artifactBinding(b.spec.Inputs.Artifacts[b.spec.ArtifactIterator.Items.InputArtifact])
		loop.Param, loop.Artifacts = &from, true
	case b.spec.ParameterIterator != nil && b.spec.ParameterIterator.Items.InputParameter != "":
		from := b.parameter(b.spec.Inputs.Parameters[b.spec.ParameterIterator.Items.InputParameter])
		loop.Param = &from
	case b.spec.ParameterIterator != nil:
		items, err := rawItems(b.spec.ParameterIterator.Items.Raw)
		if err != nil {
			items = []any{}
		}
		from := b.constant(items)
		loop.Param = &from
	default:
		return nil
	}
	return loop
}

// loopOver gives the loop for a call whose arguments have become inputs of the graph around it.
func (b *binder) loopOver(l *program.Loop) *program.Loop {
	var ref string
	switch {
	case b.spec.ArtifactIterator != nil:
		ref = "inputs.artifacts." + b.spec.ArtifactIterator.Items.InputArtifact
	case b.spec.ParameterIterator.Items.InputParameter != "":
		ref = "inputs.parameters." + b.spec.ParameterIterator.Items.InputParameter
	default:
		return l
	}
	return &program.Loop{Param: &program.Binding{Ref: ref}, Artifacts: l.Artifacts, Parallelism: l.Parallelism}
}

// rawItems reads a loop's literal items.
func rawItems(raw string) ([]any, error) {
	docs, err := documents([]byte(raw))
	if err != nil {
		return nil, err
	}
	if len(docs) == 1 {
		if list, ok := docs[0].value.([]any); ok {
			return list, nil
		}
	}
	return nil, errors.New("it is no list")
}
