package argo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// call compiles what steps and DAG tasks have in common. The key is that of the template it is in; source is the
// author's text.
func (c *compiler) call(inv *Invocation, source any, in, key string) (program.Call, error) {
	call := program.Call{Name: inv.Name, Arguments: arguments(inv.Arguments)}
	var err error
	if call.Source, err = raw(source); err != nil {
		return call, err
	}
	if inv.Inline != nil {
		written, captured, err := captureInline(inv.Inline)
		if err != nil {
			return call, fmt.Errorf("inline: %w", err)
		}
		inline, err := c.compileTemplate(written, in, key+"/"+inv.Name)
		if err != nil {
			return call, fmt.Errorf("inline: %w", err)
		}
		addInputs(inline, captured)
		call.Arguments.Parameters = append(call.Arguments.Parameters, captured...)
		call.Template.Inline = inline
		call.Template.Scope = in
	} else {
		call.Template = c.ref(in, inv.Template, inv.TemplateRef)
	}
	if inv.When != "" {
		call.When = &program.Condition{Form: "when", Source: inv.When}
	}
	if call.Loop, err = loop(inv); err != nil {
		return call, err
	}
	if inv.ContinueOn != nil {
		call.ContinueOn = program.ContinueOn{Failed: inv.ContinueOn.Failed, Error: inv.ContinueOn.Error}
	}
	call.Lifecycle = c.lifecycle(inv, in)
	return call, nil
}

// lifecycle compiles a call's hooks. The old onExit is the hook exit and goes before it; an exit hook without arguments
// gets the workflow's.
func (c *compiler) lifecycle(inv *Invocation, in string) []program.Lifecycle {
	var out []program.Lifecycle
	hooks := inv.Hooks
	if inv.OnExit != "" {
		out = append(out, program.Lifecycle{Name: exitHook, Exit: true,
			Call: program.Call{Name: exitHook, Template: c.ref(in, inv.OnExit, nil), Arguments: c.workflowArguments(in, inv.OnExit)}})
	}
	for _, name := range sortedNames(hooks) {
		h := hooks[name]
		if name == exitHook && inv.OnExit != "" {
			continue
		}
		args := arguments(h.Arguments)
		if name == exitHook {
			args = c.exitArguments(in, h)
		}
		ownOutputs(inv.Name, args.Parameters)
		out = append(out, program.Lifecycle{Name: name, Expression: h.Expression, Exit: name == exitHook,
			Call: program.Call{Name: name, Template: c.ref(in, h.Template, h.TemplateRef), Arguments: args}})
	}
	return out
}

// ownOutputs makes what a hook is given of its own call's outputs empty where the call did not give them, as it may have
// failed.
func ownOutputs(name string, args []program.Argument) {
	for i := range args {
		b := &args[i].From
		if b.Text == nil || b.Default != nil {
			continue
		}
		tag, ok := onlyTag(*b.Text)
		if !ok || !strings.HasPrefix(tag, "steps."+name+".outputs.parameters.") && !strings.HasPrefix(tag, "tasks."+name+".outputs.parameters.") {
			continue
		}
		args[i].From = program.Binding{Ref: tag, Default: literal("")}
	}
}

func loop(inv *Invocation) (*program.Loop, error) {
	switch {
	case inv.WithItems != nil:
		out := &program.Loop{Items: []any{}}
		for i, item := range inv.WithItems {
			v, err := itemValue(item)
			if err != nil {
				return nil, fmt.Errorf("withItems[%d]: %w", i, err)
			}
			out.Items = append(out.Items, v)
		}
		return out, nil
	case inv.WithParam != "":
		return &program.Loop{Param: text(inv.WithParam)}, nil
	case inv.WithSequence != nil:
		s := inv.WithSequence
		return &program.Loop{Sequence: &program.Sequence{Count: s.Count.text(), Start: s.Start.text(), End: s.End.text(), Format: s.Format}}, nil
	}
	return nil, nil
}

// itemValue gives an item as a JSON value with whole numbers as int64.
func itemValue(item Item) (any, error) {
	v, err := generic(item)
	if err != nil {
		return nil, err
	}
	return normalize(v), nil
}

func normalize(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		if f == float64(int64(f)) && f < 1e15 && f > -1e15 {
			return int64(f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = normalize(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalize(v[k])
		}
	}
	return v
}
