package engine

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/sluice-ml/sluice/internal/program"
)

// resolveInputs gives a template's inputs their values: the call's argument, else the template's own value or default.
func (x *step) resolveInputs(t *program.Template, args *program.Arguments, sc *scope) (Inputs, error) {
	var in Inputs
	if n := len(t.Inputs.Parameters); n > 0 {
		in.Parameters = make(map[string]any, n)
	}
	// Defaults may read other inputs of the template and the run, not the caller's graph.
	own := &scope{x: x, inputs: &in, item: sc.item}
	for i := range t.Inputs.Parameters {
		d := &t.Inputs.Parameters[i]
		v, ok, err := x.argument(d.Name, args.Parameters, sc, (*step).value)
		var cause error
		if err != nil {
			if !isAbsent(err) {
				return in, fmt.Errorf("argument %q: %w", d.Name, err)
			}
			cause, ok = err, false
		}
		if ok && v == nil && (d.Optional || d.Default != nil) {
			ok = false // a null for an optional input is none given (KFP)
		}
		if !ok {
			if v, ok, err = x.inputDefault(d, own); err != nil {
				return in, fmt.Errorf("input %q: %w", d.Name, err)
			}
			if !ok {
				if d.Optional {
					continue
				}
				if cause != nil {
					return in, fmt.Errorf("argument %q: %w", d.Name, cause)
				}
				return in, fmt.Errorf("inputs.parameters.%s of template %s was not supplied", d.Name, t.Name)
			}
			if in.Defaulted == nil {
				in.Defaulted = map[string]bool{}
			}
			in.Defaulted[d.Name] = true
		}
		if v, err = x.accept(d, v); err != nil {
			return in, fmt.Errorf("input %q: %w", d.Name, err)
		}
		in.Parameters[d.Name] = v
	}
	if n := len(t.Inputs.Artifacts); n > 0 {
		in.Artifacts = make(map[string][]program.Artifact, n)
	}
	for i := range t.Inputs.Artifacts {
		d := &t.Inputs.Artifacts[i]
		list, ok, err := x.artifactArgument(d.Name, args.Artifacts, sc)
		if err != nil {
			if !isAbsent(err) || !d.Optional {
				return in, fmt.Errorf("artifact %q: %w", d.Name, err)
			}
			ok = false
		}
		if !ok && d.Default != nil {
			if list, ok, err = x.artifacts(d.Default, own); err != nil {
				return in, fmt.Errorf("artifact %q: %w", d.Name, err)
			}
		}
		if !ok {
			if d.Optional {
				continue
			}
			return in, fmt.Errorf("inputs.artifacts.%s of template %s was not supplied", d.Name, t.Name)
		}
		in.Artifacts[d.Name] = list
	}
	return in, nil
}

// argument resolves the argument of a name; ok is false where there is none or it has no value.
func (x *step) argument(name string, args []program.Argument, sc *scope, get func(*step, *program.Binding, *scope) (any, bool, error)) (any, bool, error) {
	for i := range args {
		if args[i].Name == name {
			return get(x, &args[i].From, sc)
		}
	}
	return nil, false, nil
}

func (x *step) artifactArgument(name string, args []program.Argument, sc *scope) ([]program.Artifact, bool, error) {
	for i := range args {
		if args[i].Name == name {
			return x.artifacts(&args[i].From, sc)
		}
	}
	return nil, false, nil
}

// inputDefault is the value that an input has when no argument gives one.
func (x *step) inputDefault(d *program.Input, sc *scope) (any, bool, error) {
	for _, b := range []*program.Binding{d.Value, d.Default} {
		if b == nil {
			continue
		}
		if v, ok, err := x.value(b, sc); err != nil || ok {
			return v, ok, err
		}
	}
	return nil, false, nil
}

// accept converts a value to an input's type and holds it against the allowed ones.
func (x *step) accept(d *program.Input, v any) (any, error) {
	v, err := x.m.lang.Parameter(v, d.Type)
	if err != nil {
		return nil, err
	}
	if len(d.Allowed) == 0 {
		return v, nil
	}
	for _, a := range d.Allowed {
		if reflect.DeepEqual(normal(a), normal(v)) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%s is none of the allowed values %s", asJSON(v), asJSON(d.Allowed))
}

// asJSON writes a value for a message.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
