package kfp

import (
	"regexp"
	"time"
)

// iterator checks a loop.
func (v *validator) iterator(path string, t *TaskSpec, target *ComponentSpec) {
	if t.ParameterIterator != nil && t.ArtifactIterator != nil {
		v.probs.add(path, "keep one of them", "it has both a parameterIterator and an artifactIterator")
	}
	if it := t.ParameterIterator; it != nil {
		at := path + ".parameterIterator"
		if target.InputDefinitions.Parameters[it.ItemInput] == nil {
			v.probs.add(at+".itemInput", "name an input of the component", "the component has no input parameter %s", quoted(it.ItemInput))
		}
		switch {
		case it.Items.InputParameter != "":
			if t.Inputs.Parameters[it.Items.InputParameter] == nil {
				v.probs.add(at+".items.inputParameter", "name one of the task's own inputs", "the task has no input parameter %q", it.Items.InputParameter)
			}
		default:
			if _, err := rawItems(it.Items.Raw); err != nil {
				v.probs.add(at+".items.raw", "write a JSON list", "%s: %s", brief(it.Items.Raw), oneLine(err))
			}
		}
	}
	if it := t.ArtifactIterator; it != nil {
		at := path + ".artifactIterator"
		if target.InputDefinitions.Artifacts[it.ItemInput] == nil {
			v.probs.add(at+".itemInput", "name an input of the component", "the component has no input artifact %s", quoted(it.ItemInput))
		}
		if t.Inputs.Artifacts[it.Items.InputArtifact] == nil {
			v.probs.add(at+".items.inputArtifact", "name one of the task's own inputs", "the task has no input artifact %s", quoted(it.Items.InputArtifact))
		}
	}
	if t.IteratorPolicy.ParallelismLimit < 0 {
		v.probs.add(path+".iteratorPolicy.parallelismLimit", "use 0 for no limit", "it is negative")
	}
}

var conditionInput = regexp.MustCompile(`inputs\.(parameter_values|artifacts)\[(?:'([^']*)'|"([^"]*)")\]`)

// condition checks a trigger condition: that it compiles, and that the task has the inputs which it reads.
func (v *validator) condition(path string, t *TaskSpec) {
	src := t.TriggerPolicy.Condition
	if src == "" {
		return
	}
	at := path + ".triggerPolicy.condition"
	if err := v.cel.Condition(src); err != nil {
		v.probs.add(at, "fix the expression", "%s", oneLine(err))
		return
	}
	for _, m := range conditionInput.FindAllStringSubmatch(src, -1) {
		name := m[2] + m[3]
		known := t.Inputs.Parameters[name] != nil
		if m[1] == "artifacts" {
			known = t.Inputs.Artifacts[name] != nil
		} else if target := v.pipeline.Spec.Components[t.ComponentRef.Name]; target != nil && target.InputDefinitions.Parameters[name] != nil {
			known = true
		}
		if !known {
			v.probs.add(at, "give the task that input", "it reads the input %q, which the task does not have", name)
		}
	}
}

func (v *validator) retryPolicy(path string, r *RetryPolicy) {
	if r == nil {
		return
	}
	if r.MaxRetryCount < 0 {
		v.probs.add(path+".maxRetryCount", "use 0 for no retries", "it is negative")
	}
	if r.BackoffFactor < 0 {
		v.probs.add(path+".backoffFactor", "use 1 or more", "it is negative")
	}
	for name, d := range map[string]string{"backoffDuration": r.BackoffDuration, "backoffMaxDuration": r.BackoffMaxDuration} {
		if d == "" {
			continue
		}
		if parsed, err := time.ParseDuration(d); err != nil || parsed < 0 {
			v.probs.add(path+"."+name, `write seconds, such as "30s"`, "%q is no duration", d)
		}
	}
}
