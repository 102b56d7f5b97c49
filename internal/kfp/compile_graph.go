package kfp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// graph compiles a component's tasks into calls.
func (c *compiler) graph(t *program.Template, spec *ComponentSpec, inherited *RetryPolicy) {
	tasks := spec.Dag.Tasks
	names := sortedKeys(tasks)
	index := make(map[string]int, len(names))
	for i, n := range names {
		index[n] = i
	}
	g := &program.Graph{}
	for _, n := range names {
		task := tasks[n]
		g.Calls = append(g.Calls, c.call(t.Key, n, task, index, inherited))
	}
	for _, n := range names {
		for _, in := range tasks[n].Inputs.Parameters {
			if i, ok := index[finalTask(tasks[n], in)]; ok {
				// Who is told how a task ended does not make up for its failure.
				g.Calls[i].Decisive = true
			}
		}
	}
	t.Graph = g
	t.Outputs = graphOutputs(spec)
}

// call compiles one task.
func (c *compiler) call(owner, name string, task *TaskSpec, index map[string]int, inherited *RetryPolicy) program.Call {
	target := c.pipeline.Spec.Components[task.ComponentRef.Name]
	retry := task.RetryPolicy
	if retry == nil {
		retry = inherited
	}
	call := program.Call{
		Name: name, Title: task.TaskInfo.Name,
		Source: toJSON(map[string]any{"name": name, "componentRef": map[string]any{"name": task.ComponentRef.Name}, "cachingOptions": map[string]any{
			"enableCache": task.CachingOptions.EnableCache, "cacheKey": task.CachingOptions.CacheKey,
		}}),
	}
	if call.Title == name {
		call.Title = ""
	}
	scope := localScope
	if target.Dag != nil {
		if retry != nil {
			scope = retryScope(retry)
		}
		c.component(scope, task.ComponentRef.Name, target, retry)
	} else {
		c.component(scope, task.ComponentRef.Name, target, nil)
		call.Retry = compileRetry(retry)
		if task.CachingOptions.EnableCache && c.cacheable(target) {
			call.Cache = &program.Cache{Scheme: "kfp", Key: task.CachingOptions.CacheKey}
		}
	}
	call.Template = program.TemplateRef{Scope: scope, Name: task.ComponentRef.Name}
	b := binder{compiler: c, owner: owner, task: name, spec: task, target: target}
	call.Arguments = b.arguments()
	call.Loop = b.loop()
	if task.TriggerPolicy.Condition != "" {
		call.When = &program.Condition{Form: "cel", Source: task.TriggerPolicy.Condition}
	}
	call.Needs, call.Depends = order(task, b.platformTasks(), index)
	if call.Loop != nil {
		call.Loop.EmptySucceeds = true
	}
	// The tasks inside an exit handler count, whatever its exit task does; the SDK names it so.
	call.Decisive = strings.HasPrefix(task.ComponentRef.Name, "comp-exit-handler-")
	if call.Loop != nil && call.When != nil {
		return c.conditionalLoop(call, b)
	}
	return call
}

// conditionalLoop wraps a loop with a condition into a graph of its own: the condition decides once about the loop as a
// whole, where a call's condition would decide about each iteration.
func (c *compiler) conditionalLoop(loop program.Call, b binder) program.Call {
	outer := loop
	outer.Loop, outer.Retry, outer.Cache = nil, nil, nil
	outer.Template = program.TemplateRef{Scope: loopScope, Name: b.owner + "." + loop.Name}
	key := outer.Template.Scope + "/" + outer.Template.Name
	t := &program.Template{Key: key, Name: outer.Template.Name, Graph: &program.Graph{}}
	declared := map[string]program.Input{}
	for _, in := range c.templates[loop.Template.Scope+"/"+loop.Template.Name].Inputs.Parameters {
		declared[in.Name] = in
	}
	inner := loop
	inner.When, inner.Needs, inner.Depends = nil, nil, nil
	inner.Arguments = program.Arguments{}
	outer.Arguments = program.Arguments{}
	for _, a := range loop.Arguments.Parameters {
		if a.From.Ref == "item" {
			inner.Arguments.Parameters = append(inner.Arguments.Parameters, a)
			continue
		}
		in := declared[a.Name]
		in.Name, in.Optional = a.Name, true
		t.Inputs.Parameters = append(t.Inputs.Parameters, in)
		outer.Arguments.Parameters = append(outer.Arguments.Parameters, a)
		inner.Arguments.Parameters = append(inner.Arguments.Parameters, program.Argument{Name: a.Name, From: program.Binding{Ref: "inputs.parameters." + a.Name}})
	}
	for _, a := range loop.Arguments.Artifacts {
		if a.From.Ref == "item" {
			inner.Arguments.Artifacts = append(inner.Arguments.Artifacts, a)
			continue
		}
		t.Inputs.Artifacts = append(t.Inputs.Artifacts, program.InputArtifact{Name: a.Name, List: true, Optional: true})
		outer.Arguments.Artifacts = append(outer.Arguments.Artifacts, a)
		inner.Arguments.Artifacts = append(inner.Arguments.Artifacts, program.Argument{Name: a.Name, From: program.Binding{Ref: "inputs.artifacts." + a.Name}})
	}
	inner.Loop = b.loopOver(loop.Loop)
	if c := inner.Loop.Param; c != nil && inner.Loop == loop.Loop && c.Ref == "" && c.Const == nil {
		// Literal items with placeholders are resolved outside, where these mean something.
		const items = kfpexpr.HiddenInput + "items"
		t.Inputs.Parameters = append(t.Inputs.Parameters, program.Input{Name: items, Type: program.List})
		outer.Arguments.Parameters = append(outer.Arguments.Parameters, program.Argument{Name: items, From: *loop.Loop.Param})
		inner.Loop = &program.Loop{Param: &program.Binding{Ref: "inputs.parameters." + items}, Parallelism: loop.Loop.Parallelism}
	}
	for _, n := range sortedKeys(b.target.OutputDefinitions.Parameters) {
		from := outputParameter(loop.Name, n)
		t.Outputs.Parameters = append(t.Outputs.Parameters, program.Output{Name: n, From: &from, Optional: true})
	}
	for _, n := range sortedKeys(b.target.OutputDefinitions.Artifacts) {
		from := outputArtifact(loop.Name, n)
		t.Outputs.Artifacts = append(t.Outputs.Artifacts, program.OutputArtifact{Name: n, From: &from, List: true, Optional: true})
	}
	t.Graph.Calls = []program.Call{inner}
	c.templates[key] = t
	return outer
}

// cacheable says whether a component's outputs can be reused: those of containers. An importer has its own reimport.
func (c *compiler) cacheable(target *ComponentSpec) bool {
	e := c.pipeline.Spec.DeploymentSpec.Executors[target.ExecutorLabel]
	return e != nil && e.Container != nil
}

// order gives the calls that a task waits for, by index, and what they must have become.
func order(task *TaskSpec, more []string, index map[string]int) ([]int, *program.Depends) {
	needs := map[int]bool{}
	for _, n := range append(upstream(task), more...) {
		if i, ok := index[n]; ok {
			needs[i] = true
		}
	}
	if len(needs) == 0 {
		return nil, nil
	}
	result := program.Succeeded
	if task.TriggerPolicy.Strategy == allCompleted {
		result = program.Ended
	}
	var list []int
	for i := range needs {
		list = append(list, i)
	}
	slices.Sort(list)
	all := make([]*program.Depends, len(list))
	for k, i := range list {
		all[k] = &program.Depends{Op: program.Is, Call: i, Result: result}
	}
	if len(all) == 1 {
		return list, all[0]
	}
	return list, &program.Depends{Op: program.And, Args: all}
}

// upstream names the tasks that a task waits for: those it says, and those whose outputs or end it takes.
func upstream(task *TaskSpec) []string {
	out := slices.Clone(task.DependentTasks)
	for _, p := range task.Inputs.Parameters {
		out = append(out, p.producer()...)
	}
	for _, a := range task.Inputs.Artifacts {
		if a.TaskOutputArtifact != nil {
			out = append(out, a.TaskOutputArtifact.ProducerTask)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// producer names the task whose output or end an input takes, if any.
func (p *TaskParameter) producer() []string {
	switch {
	case p == nil:
		return nil
	case p.TaskOutputParameter != nil:
		return []string{p.TaskOutputParameter.ProducerTask}
	case p.TaskFinalStatus != nil && p.TaskFinalStatus.ProducerTask != "":
		return []string{p.TaskFinalStatus.ProducerTask}
	}
	return nil
}

// graphOutputs says which calls a graph's outputs come from. Their declared types are left out: inside a loop the SDK
// declares a list where each iteration gives an element.
func graphOutputs(spec *ComponentSpec) program.Outputs {
	var out program.Outputs
	for _, n := range sortedKeys(spec.Dag.Outputs.Parameters) {
		o := spec.Dag.Outputs.Parameters[n]
		var from []program.Binding
		if s := o.ValueFromParameter; s != nil {
			from = append(from, outputParameter(s.ProducerSubtask, s.OutputParameterKey))
		}
		if o.ValueFromOneof != nil {
			for _, s := range o.ValueFromOneof.ParameterSelectors {
				from = append(from, outputParameter(s.ProducerSubtask, s.OutputParameterKey))
			}
		}
		out.Parameters = append(out.Parameters, program.Output{Name: n, From: oneOf(from, o.ValueFromOneof != nil), Optional: true})
	}
	for _, n := range sortedKeys(spec.Dag.Outputs.Artifacts) {
		var from []program.Binding
		for _, s := range spec.Dag.Outputs.Artifacts[n].ArtifactSelectors {
			from = append(from, outputArtifact(s.ProducerSubtask, s.OutputArtifactKey))
		}
		decl := program.OutputArtifact{Name: n, From: oneOf(from, len(from) > 1), Optional: true}
		if d := spec.OutputDefinitions.Artifacts[n]; d != nil {
			decl.Type, decl.List = d.ArtifactType.title(), d.IsArtifactList
		}
		out.Artifacts = append(out.Artifacts, decl)
	}
	return out
}

func oneOf(from []program.Binding, several bool) *program.Binding {
	if !several && len(from) == 1 {
		return &from[0]
	}
	return &program.Binding{OneOf: from}
}

func outputParameter(task, key string) program.Binding {
	return program.Binding{Ref: "tasks." + task + ".outputs.parameters." + key}
}

func outputArtifact(task, key string) program.Binding {
	return program.Binding{Ref: "tasks." + task + ".outputs.artifacts." + key}
}

// compileRetry gives a retry policy; nil for none. KFP retries whatever went wrong.
func compileRetry(r *RetryPolicy) *program.Retry {
	if r == nil || r.MaxRetryCount <= 0 {
		return nil
	}
	out := &program.Retry{Limit: strconv.FormatInt(r.MaxRetryCount, 10), Policy: "Always"}
	wait := seconds(r.BackoffDuration)
	if wait == "" || wait == "0" {
		return out
	}
	out.Backoff = &program.Backoff{Duration: wait, Cap: seconds(r.BackoffMaxDuration)}
	if r.BackoffFactor > 0 {
		out.Backoff.Factor = strconv.FormatFloat(r.BackoffFactor, 'f', -1, 64)
	}
	return out
}

// seconds turns a protojson duration ("3600s", "1.500s") into what the engine reads: seconds, or a duration where it has a
// fraction.
func seconds(d string) string {
	parsed, err := time.ParseDuration(d)
	if err != nil {
		return ""
	}
	if parsed%time.Second == 0 {
		return strconv.FormatInt(int64(parsed/time.Second), 10)
	}
	return parsed.String()
}

// retryScope is the template scope of components whose tasks inherit a retry policy.
func retryScope(r *RetryPolicy) string {
	b, err := json.Marshal(r)
	if err != nil {
		return localScope
	}
	sum := sha256.Sum256(b)
	return strings.Join([]string{localScope, "retry", hex.EncodeToString(sum[:4])}, "-")
}
