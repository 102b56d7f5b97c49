package argo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// steps checks a steps template.
func (v *validator) steps(p place, t *Template, in string, vars *variables) {
	if len(t.Steps) == 0 {
		v.refuse(p.at("steps"), "must have at least one round of steps")
	}
	earlier := map[string]visible{}
	vars.word = "steps"
	vars.call = func(name string) (visible, bool) { c, ok := earlier[name]; return c, ok }
	seen := map[string]string{}
	for i, round := range t.Steps {
		for j := range round {
			step := &round[j]
			at := p.at("steps")
			at.path, at.name = fmt.Sprintf("%s[%d][%d]", at.path, i, j), fmt.Sprintf("%s[%d]", at.name, i)
			nameAt := at.at("name")
			v.fieldName(nameAt, step.Name)
			if first, ok := seen[step.Name]; ok && step.Name != "" {
				v.invalid(nameAt, fmt.Sprintf("%s.name '%s' is not unique", at.name, step.Name), "%s is also the name of %s; give each its own", shorten(step.Name), first)
			}
			seen[step.Name] = fmt.Sprintf("steps[%d][%d]", i, j)
			at.name += "." + step.Name
			resolved := v.call(at, &step.Invocation, in)
			self := visible{t: resolved, loop: step.loops(), own: true}
			earlier[step.Name] = self
			v.callTexts(at, at.name+" ", &step.Invocation, vars)
			self.own = false
			earlier[step.Name] = self
			v.inline(at, &step.Invocation, in, vars)
		}
	}
	v.outputTexts(p, vars)
}

// dag checks a DAG template.
func (v *validator) dag(p place, t *Template, in string, vars *variables) {
	tasks := t.DAG.Tasks
	if len(tasks) == 0 {
		v.refuse(p.at("dag.tasks"), "must have at least one task")
		return
	}
	index := map[string]int{}
	for i := range tasks {
		at := dagPlace(p, i, "")
		v.fieldName(at.at("name"), tasks[i].Name)
		if first, ok := index[tasks[i].Name]; ok {
			v.invalid(at.at("name"), fmt.Sprintf("%s.tasks[%d].name '%s' is not unique", p.name, i, tasks[i].Name), "%s is also the name of tasks[%d]; give each its own", shorten(tasks[i].Name), first)
			continue
		}
		index[tasks[i].Name] = i
	}
	needs := v.dependencies(p, tasks, index)
	if cycle := findCycle(needs); cycle != nil {
		names := make([]string, len(cycle))
		for i, n := range cycle {
			names[i] = tasks[n].Name
		}
		v.invalid(dagPlace(p, cycle[0], tasks[cycle[0]].Name), p.name+".tasks dependency cycle detected: "+strings.Join(names, "->"), "wait for each other in a circle: %s", strings.Join(names, " -> "))
		return
	}
	for target := range strings.FieldsSeq(t.DAG.Target) {
		if _, ok := index[target]; !ok && !hasTag(t.DAG.Target) {
			v.invalid(p.at("dag.target"), fmt.Sprintf("%s.targets: target '%s' is not defined", p.name, target), "there is no task %q%s", target, maybe(nearest(target, index)))
		}
	}
	all := make([]visible, len(tasks))
	for i := range tasks {
		all[i] = visible{t: v.call(dagPlace(p, i, tasks[i].Name), &tasks[i].Invocation, in), loop: tasks[i].loops()}
	}
	reach := newReachability(needs)
	vars.word = "tasks"
	for i := range tasks {
		at := dagPlace(p, i, tasks[i].Name)
		vars.call = func(name string) (visible, bool) {
			n, ok := index[name]
			if !ok {
				return visible{}, false
			}
			c := all[n]
			c.own, c.later = n == i, n != i && !reach.needed(i, n)
			return c, true
		}
		v.callTexts(at, at.name+" ", &tasks[i].Invocation, vars)
		v.inline(at, &tasks[i].Invocation, in, vars)
	}
	vars.call = func(name string) (visible, bool) {
		n, ok := index[name]
		if !ok {
			return visible{}, false
		}
		return all[n], true
	}
	v.outputTexts(p, vars)
}

// dagPlace is the place of a task. Argo's messages name it "templates.x.tasks.y".
func dagPlace(p place, i int, name string) place {
	at := p.at("dag.tasks").item(i)
	at.name = p.name + ".tasks." + name
	if name == "" {
		at.name = fmt.Sprintf("%s.tasks[%d]", p.name, i)
	}
	return at
}

// loops says whether a call is repeated.
func (inv *Invocation) loops() bool {
	return inv.WithItems != nil || inv.WithParam != "" || inv.WithSequence != nil
}

// dependencies checks what tasks wait for, and gives it as indices.
func (v *validator) dependencies(p place, tasks []DAGTask, index map[string]int) [][]int {
	needs := make([][]int, len(tasks))
	usesDepends := slices.ContainsFunc(tasks, func(t DAGTask) bool { return t.Depends != "" })
	for i := range tasks {
		task := &tasks[i]
		at := dagPlace(p, i, task.Name)
		switch {
		case task.Depends != "" && len(task.Dependencies) > 0:
			v.refuse(at, "has both depends and dependencies; keep one")
		case usesDepends && len(task.Dependencies) > 0:
			v.invalid(at.at("dependencies"), p.name+" cannot use both 'depends' and 'dependencies' in the same DAG template", "cannot be used in a DAG where another task uses depends; write depends: %s", strings.Join(task.Dependencies, " && "))
		}
		if usesDepends && task.ContinueOn != nil {
			v.invalid(at.at("continueOn"), p.name+" cannot use 'continueOn' when using 'depends'. Instead use 'dep-task.Failed'/'dep-task.Errored'",
				"cannot be used in a DAG that uses depends; let those that follow depend on %s.Failed or %s.Errored too", task.Name, task.Name)
		}
		if (usesDepends || len(task.Dependencies) > 0) && task.Name != "" && task.Name[0] >= '0' && task.Name[0] <= '9' {
			v.invalid(at.at("name"), at.name+" name cannot begin with a digit when using either 'depends' or 'dependencies'", "cannot begin with a digit in a DAG with dependencies")
		}
		var own intSet
		add := func(field place, name string, items bool) {
			n, ok := index[name]
			if !ok {
				v.invalid(field, fmt.Sprintf("%s dependency '%s' not defined", at.name, name), "there is no task %q%s", name, maybe(nearest(name, index)))
				return
			}
			if items && !tasks[n].loops() {
				v.invalid(field, fmt.Sprintf("%s dependency '%s' uses an items-based condition such as .AnySucceeded or .AllFailed but does not contain any items", at.name, name),
					"AnySucceeded and AllFailed are about the items of a loop, and %s has none; use Succeeded or Failed", name)
			}
			own.add(n)
		}
		for j, d := range task.Dependencies {
			add(at.at("dependencies").item(j), d, false)
		}
		if task.Depends != "" {
			tree, err := parseDepends(task.Depends)
			if err != nil {
				v.invalid(at.at("depends"), fmt.Sprintf("%s %v", at.name, err), "%v", err)
				continue
			}
			items := tree.asksItems()
			for _, name := range tree.tasks() {
				add(at.at("depends"), name, items[name])
			}
		}
		needs[i] = own.list
	}
	return needs
}

// call checks what steps and tasks have in common, and gives the template that it runs, nil where that is not known.
func (v *validator) call(p place, inv *Invocation, in string) *Template {
	v.arguments(p.at("arguments"), inv.Arguments)
	v.loop(p, inv)
	targets := 0
	for _, set := range []bool{inv.Template != "", inv.TemplateRef != nil, inv.Inline != nil} {
		if set {
			targets++
		}
	}
	var t *Template
	switch {
	case targets == 0:
		v.invalid(p, p.name+" template name is required", "does not say what to run; add template, templateRef or inline")
	case targets > 1 && inv.Inline != nil:
		v.late(p, "has inline beside template or templateRef; keep one, inline goes first")
		t = inv.Inline
	default:
		t = v.target(p, p.name, in, inv.Template, inv.TemplateRef, inv.Inline, &inv.Arguments)
	}
	v.hooks(p.at("hooks"), p.name, inv.Hooks, in)
	if inv.OnExit != "" {
		v.soft = true
		v.target(p.at("onExit"), p.name, in, inv.OnExit, nil, nil, v.startArguments())
		v.soft = false
	}
	return t
}

// loop checks that a call is repeated in one way only.
func (v *validator) loop(p place, inv *Invocation) {
	ways := 0
	for _, set := range []bool{inv.WithItems != nil, inv.WithParam != "", inv.WithSequence != nil} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		v.invalid(p, p.name+" only one of withItems, withParam, withSequence can be specified", "has several of withItems, withParam and withSequence; keep one")
	}
	if inv.WithParam != "" && !hasTag(inv.WithParam) {
		var items []any
		if err := json.Unmarshal([]byte(inv.WithParam), &items); err != nil {
			v.late(p.at("withParam"), "%s is not a JSON list, such as [1, 2, 3]", shorten(inv.WithParam))
		}
	}
	if s := inv.WithSequence; s != nil {
		switch {
		case s.Count != nil && s.End != nil:
			v.refuse(p.at("withSequence"), "has both count and end; keep one")
		case s.Count == nil && s.End == nil:
			v.late(p.at("withSequence"), "must have count or end")
		}
		for field, value := range map[string]*IntOrString{"count": s.Count, "start": s.Start, "end": s.End} {
			if text := value.text(); text != "" && !hasTag(text) && !wholeNumber(text) {
				v.late(p.at("withSequence").at(field), "%s is not a whole number", shorten(text))
			}
		}
	}
}

func wholeNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// hooks checks lifecycle hooks. An exit hook without arguments gets the workflow's.
func (v *validator) hooks(p place, prefix string, hooks LifecycleHooks, in string) {
	for _, name := range sortedNames(hooks) {
		h := hooks[name]
		at := p.at(name)
		if name != exitHook && h.Expression == "" {
			v.invalid(at.at("expression"), fmt.Sprintf("%s.%s Expression required", prefix, name), "is missing; it says when the hook runs (only the hook called exit may go without)")
		}
		v.expression(at.at("expression"), h.Expression)
		given := &h.Arguments
		if name == exitHook && len(h.Arguments.Parameters) == 0 && len(h.Arguments.Artifacts) == 0 {
			given = v.startArguments()
		}
		if h.Template == "" && h.TemplateRef == nil {
			v.late(at, "does not say what to run; add template or templateRef")
			continue
		}
		v.soft = true // Argo looks at what a hook runs only when it runs
		v.arguments(at.at("arguments"), h.Arguments)
		if h.TemplateRef == nil {
			at = at.at("template")
		}
		v.target(at, prefix+"."+name, in, h.Template, h.TemplateRef, nil, given)
		v.soft = false
	}
}

// inline checks a template that is written inside a call.
func (v *validator) inline(p place, inv *Invocation, in string, vars *variables) {
	if inv.Inline == nil {
		return
	}
	at := p.at("inline")
	at.name = p.name
	v.template(at, inv.Inline, in, vars.inside(inv))
}

// asksItems lists the tasks that are asked for results of their items.
func (t *dependsTree) asksItems() map[string]bool {
	out := map[string]bool{}
	if t.result == "AnySucceeded" || t.result == "AllFailed" {
		out[t.task] = true
	}
	for _, a := range t.args {
		for name := range a.asksItems() {
			out[name] = true
		}
	}
	return out
}
