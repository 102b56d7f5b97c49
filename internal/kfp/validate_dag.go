package kfp

import (
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
)

// dag checks a component's tasks and outputs.
func (v *validator) dag(path string, c *ComponentSpec) {
	at := path + ".dag.tasks."
	for _, n := range sortedKeys(c.Dag.Tasks) {
		v.task(at+n, n, c, c.Dag.Tasks[n])
	}
	v.order(path+".dag", c.Dag)
	for _, n := range sortedKeys(c.Dag.Outputs.Parameters) {
		o := c.Dag.Outputs.Parameters[n]
		out := path + ".dag.outputs.parameters." + n
		if o.ValueFromParameter == nil && (o.ValueFromOneof == nil || len(o.ValueFromOneof.ParameterSelectors) == 0) {
			v.probs.add(out, "give it valueFromParameter or valueFromOneof", "it comes from nowhere")
		}
		if s := o.ValueFromParameter; s != nil {
			v.outputParameter(out+".valueFromParameter", c.Dag, s.ProducerSubtask, s.OutputParameterKey)
		}
		if o.ValueFromOneof != nil {
			for i, s := range o.ValueFromOneof.ParameterSelectors {
				v.outputParameter(fmt.Sprintf("%s.valueFromOneof.parameterSelectors[%d]", out, i), c.Dag, s.ProducerSubtask, s.OutputParameterKey)
			}
		}
	}
	for _, n := range sortedKeys(c.Dag.Outputs.Artifacts) {
		o := c.Dag.Outputs.Artifacts[n]
		out := path + ".dag.outputs.artifacts." + n
		if len(o.ArtifactSelectors) == 0 {
			v.probs.add(out, "give it artifactSelectors", "it comes from nowhere")
		}
		for i, s := range o.ArtifactSelectors {
			v.outputArtifact(fmt.Sprintf("%s.artifactSelectors[%d]", out, i), c.Dag, s.ProducerSubtask, s.OutputArtifactKey)
		}
	}
}

// task checks one task of a component.
func (v *validator) task(path, name string, parent *ComponentSpec, t *TaskSpec) {
	if name == "" || strings.ContainsAny(name, ".'\"/") {
		v.probs.add(path, "rename the task", "a task's name has neither dots, slashes nor quotes, and is not empty")
	}
	for i, d := range t.DependentTasks {
		if parent.Dag.Tasks[d] == nil {
			v.probs.add(fmt.Sprintf("%s.dependentTasks[%d]", path, i), "name a task of the same dag, or remove it", "there is no task %q", d)
		}
	}
	switch t.TriggerPolicy.Strategy {
	case "", "TRIGGER_STRATEGY_UNSPECIFIED", allSucceeded, allCompleted:
	default:
		v.probs.add(path+".triggerPolicy.strategy", "use "+allSucceeded+" or "+allCompleted, "%q is no strategy", t.TriggerPolicy.Strategy)
	}
	v.retryPolicy(path+".retryPolicy", t.RetryPolicy)
	target := v.pipeline.Spec.Components[t.ComponentRef.Name]
	if target == nil {
		v.probs.add(path+".componentRef.name", "name one of the components, or add it", "there is no component %s", quoted(t.ComponentRef.Name))
		return
	}
	for _, n := range sortedKeys(t.Inputs.Parameters) {
		v.taskParameter(path+".inputs.parameters."+n, n, parent, t, t.Inputs.Parameters[n], target)
	}
	for _, n := range sortedKeys(t.Inputs.Artifacts) {
		v.taskArtifact(path+".inputs.artifacts."+n, n, parent, t.Inputs.Artifacts[n], target)
	}
	v.iterator(path, t, target)
	v.required(path, t, target)
	v.condition(path, t)
	if target.Dag == nil {
		k := v.pipeline.Platform.Kubernetes.DeploymentSpec.Executors[target.ExecutorLabel]
		if k != nil {
			for _, s := range platformParameters(k) {
				at := "platforms.kubernetes.deploymentSpec.executors." + target.ExecutorLabel
				v.source(at, parent, t, s.from)
			}
		}
	}
}

// taskParameter checks where an input parameter comes from, and that it is of the declared type as far as that is known.
// The SDK gives tasks inputs that their component does not declare, for placeholders in resource settings and constants.
func (v *validator) taskParameter(path, name string, parent *ComponentSpec, t *TaskSpec, p *TaskParameter, target *ComponentSpec) {
	d := target.InputDefinitions.Parameters[name]
	v.source(path, parent, t, p)
	if d == nil {
		return
	}
	typ := parameterType(d.ParameterType, d.Type)
	if typ == "" {
		return
	}
	if p.ExpressionSelector != "" {
		return
	}
	switch {
	case p.RuntimeValue != nil && p.RuntimeValue.constant() != nil:
		v.constant(path, p.RuntimeValue.constant().JSON, typ, d)
	case p.TaskOutputParameter != nil:
		producer := parent.Dag.Tasks[p.TaskOutputParameter.ProducerTask]
		if producer == nil || producer.ParameterIterator != nil || producer.ArtifactIterator != nil {
			return
		}
		c := v.pipeline.Spec.Components[producer.ComponentRef.Name]
		if c == nil || c.Dag != nil {
			return // inside loops the SDK declares lists for what each iteration gives as one
		}
		if o := c.OutputDefinitions.Parameters[p.TaskOutputParameter.OutputParameterKey]; o != nil {
			v.fits(path, parameterType(o.ParameterType, o.Type), typ)
		}
	case p.TaskFinalStatus != nil:
		v.fits(path, "STRUCT", typ)
	}
}

// fits checks that a value of one type can be given where another is declared. A STRING takes anything.
func (v *validator) fits(path, from, to string) {
	kind := func(t string) string {
		switch t {
		case "NUMBER_DOUBLE":
			return "NUMBER_INTEGER"
		case "TASK_FINAL_STATUS", "TASK_CONFIG":
			return "STRUCT"
		}
		return t
	}
	if from != "" && to != "STRING" && kind(from) != kind(to) {
		v.probs.add(path, "connect outputs and inputs of the same type", "a %s is given where a %s is declared", from, to)
	}
}

func (v *validator) constant(path string, c any, typ string, d *InputParameter) {
	if s, ok := c.(string); ok && len(kfpexpr.Placeholders(s)) > 0 {
		return // known at run time only
	}
	if c == nil {
		if !d.IsOptional && d.DefaultValue == nil {
			v.probs.add(path, "give it a value", "it is null, and the component needs it")
		}
		return
	}
	if typ != "STRING" {
		if why := mismatch(c, typ); why != "" {
			v.probs.add(path, "give a value of that type", "%s", why)
			return
		}
	}
	if !allowed(c, d.Literals) {
		v.probs.add(path, "use one of "+literalList(d.Literals), "%s is none of the literals of the input", brief(c))
	}
}

// source checks that what an input refers to is there.
func (v *validator) source(path string, parent *ComponentSpec, t *TaskSpec, p *TaskParameter) {
	kinds := 0
	if p.TaskOutputParameter != nil {
		kinds++
		v.outputParameter(path+".taskOutputParameter", parent.Dag, p.TaskOutputParameter.ProducerTask, p.TaskOutputParameter.OutputParameterKey)
	}
	if p.ComponentInputParameter != "" {
		kinds++
		v.componentInput(path+".componentInputParameter", parent, p.ComponentInputParameter)
	}
	if p.RuntimeValue != nil {
		kinds++
		switch {
		case p.RuntimeValue.RuntimeParameter != "":
			v.componentInput(path+".runtimeValue.runtimeParameter", parent, p.RuntimeValue.RuntimeParameter)
		case p.RuntimeValue.constant() == nil:
			v.probs.add(path+".runtimeValue", "give it a constant", "it has no value")
		}
	}
	if p.TaskFinalStatus != nil {
		kinds++
		producer := p.TaskFinalStatus.ProducerTask
		if producer == "" && len(t.DependentTasks) > 0 {
			producer = t.DependentTasks[0]
		}
		if parent.Dag.Tasks[producer] == nil {
			v.probs.add(path+".taskFinalStatus.producerTask", "name a task of the same dag", "there is no task %s", quoted(producer))
		}
	}
	if kinds == 0 {
		v.probs.add(path, "give it taskOutputParameter, componentInputParameter, runtimeValue or taskFinalStatus", "it comes from nowhere")
	}
	if kinds > 1 {
		v.probs.add(path, "keep one source", "it comes from several places at once")
	}
	if p.ExpressionSelector != "" {
		if err := v.cel.Selector(p.ExpressionSelector); err != nil {
			v.probs.add(path+".parameterExpressionSelector", "fix the expression", "%s", oneLine(err))
		}
	}
}

func (v *validator) componentInput(path string, parent *ComponentSpec, name string) {
	if parent.InputDefinitions.Parameters[name] == nil && !v.extraOf(parent)[name] {
		v.probs.add(path, "declare it in inputDefinitions.parameters of the component around the task", "there is no input parameter %q", name)
	}
}

// extraOf gives the undeclared inputs that tasks give to a component.
func (v *validator) extraOf(c *ComponentSpec) map[string]bool {
	for n, other := range v.pipeline.Spec.Components {
		if other == c {
			return v.extra[n]
		}
	}
	return nil
}

func (v *validator) taskArtifact(path, name string, parent *ComponentSpec, a *TaskArtifact, target *ComponentSpec) {
	if target.InputDefinitions.Artifacts[name] == nil && !strings.HasPrefix(name, "pipelinechannel--") {
		v.probs.add(path, "remove it, or declare it", "the component has no input artifact of that name")
	}
	switch {
	case a.TaskOutputArtifact != nil && a.ComponentInputArtifact != "":
		v.probs.add(path, "keep one source", "it comes from several places at once")
	case a.TaskOutputArtifact != nil:
		v.outputArtifact(path+".taskOutputArtifact", parent.Dag, a.TaskOutputArtifact.ProducerTask, a.TaskOutputArtifact.OutputArtifactKey)
	case a.ComponentInputArtifact == "":
		v.probs.add(path, "give it taskOutputArtifact or componentInputArtifact", "it comes from nowhere")
	case parent.InputDefinitions.Artifacts[a.ComponentInputArtifact] == nil:
		v.probs.add(path+".componentInputArtifact", "declare it in inputDefinitions.artifacts of the component around the task",
			"there is no input artifact %q", a.ComponentInputArtifact)
	}
}

// outputParameter checks that a task of a graph has an output parameter.
func (v *validator) outputParameter(path string, dag *DagSpec, task, key string) {
	if c := v.producer(path, dag, task); c != nil {
		_, ofDag := dagParameter(c, key)
		if c.OutputDefinitions.Parameters[key] == nil && !ofDag {
			v.probs.add(path, "name one of its outputs, or declare it", "the task %s has no output parameter %q", task, key)
		}
	}
}

func dagParameter(c *ComponentSpec, key string) (DagOutputParameter, bool) {
	if c.Dag == nil {
		return DagOutputParameter{}, false
	}
	o, ok := c.Dag.Outputs.Parameters[key]
	return o, ok
}

func (v *validator) outputArtifact(path string, dag *DagSpec, task, key string) {
	c := v.producer(path, dag, task)
	if c == nil || c.OutputDefinitions.Artifacts[key] != nil {
		return
	}
	if c.Dag != nil {
		if _, ok := c.Dag.Outputs.Artifacts[key]; ok {
			return
		}
	}
	v.probs.add(path, "name one of its outputs, or declare it", "the task %s has no output artifact %q", task, key)
}

// producer gives the component of a task; nil, and a problem, where there is no such task. A task whose component is
// missing has its own problem already.
func (v *validator) producer(path string, dag *DagSpec, task string) *ComponentSpec {
	t := dag.Tasks[task]
	if t == nil {
		v.probs.add(path, "name a task of the same dag", "there is no task %s", quoted(task))
		return nil
	}
	return v.pipeline.Spec.Components[t.ComponentRef.Name]
}

// required checks that a component gets all that it cannot do without.
func (v *validator) required(path string, t *TaskSpec, target *ComponentSpec) {
	item := ""
	if t.ParameterIterator != nil {
		item = t.ParameterIterator.ItemInput
	} else if t.ArtifactIterator != nil {
		item = t.ArtifactIterator.ItemInput
	}
	for _, n := range sortedKeys(target.InputDefinitions.Parameters) {
		d := target.InputDefinitions.Parameters[n]
		typ := parameterType(d.ParameterType, d.Type)
		if t.Inputs.Parameters[n] == nil && n != item && !d.IsOptional && d.DefaultValue == nil && typ != "TASK_CONFIG" {
			v.probs.add(path+".inputs.parameters", "give it, or make it optional", "the component %s needs the input parameter %q", t.ComponentRef.Name, n)
		}
	}
	for _, n := range sortedKeys(target.InputDefinitions.Artifacts) {
		if t.Inputs.Artifacts[n] == nil && n != item && !target.InputDefinitions.Artifacts[n].IsOptional {
			v.probs.add(path+".inputs.artifacts", "give it, or make it optional", "the component %s needs the input artifact %q", t.ComponentRef.Name, n)
		}
	}
}

// order finds circles in the order of a graph's tasks.
func (v *validator) order(path string, dag *DagSpec) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var trail []string
	var visit func(name string)
	visit = func(name string) {
		t := dag.Tasks[name]
		if t == nil || state[name] == done {
			return
		}
		if state[name] == visiting {
			v.probs.add(path, "break the circle", "its tasks wait for each other: %s", circle(trail, name))
			return
		}
		state[name] = visiting
		trail = append(trail, name)
		for _, u := range upstream(t) {
			visit(u)
		}
		trail = trail[:len(trail)-1]
		state[name] = done
	}
	for _, n := range sortedKeys(dag.Tasks) {
		visit(n)
	}
}

// oneLine brings an error's message on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
