package kfp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// FailFast is Argo's default, which upstream relies on. It would also keep tasks from starting whose very purpose is to
	// run after a failure, so a graph with such tasks goes on.
	g := &program.Graph{FailFast: true}
	for _, n := range names {
		task := tasks[n]
		if task.TriggerPolicy.Strategy == allCompleted {
			g.FailFast = false
		}
		g.Calls = append(g.Calls, c.call(n, task, index, inherited))
	}
	t.Graph = g
	t.Outputs = graphOutputs(spec)
}

// call compiles one task.
func (c *compiler) call(name string, task *TaskSpec, index map[string]int, inherited *RetryPolicy) program.Call {
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
	b := binder{compiler: c, task: name, spec: task, target: target}
	call.Arguments = b.arguments()
	call.Loop = b.loop()
	if task.TriggerPolicy.Condition != "" {
		call.When = &program.Condition{Form: "cel", Source: task.TriggerPolicy.Condition}
	}
	call.Needs, call.Depends = order(task, b.platformTasks(), index)
	return call
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
