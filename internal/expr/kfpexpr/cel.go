package kfpexpr

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-ml/sluice/internal/expr"
)

// Bounds of an expression: what it may cost to evaluate, how long and how deeply nested its source may be, and how many
// compiled ones are kept.
const (
	maxCost      = 1_000_000
	maxSource    = 32 << 10
	maxRecursion = 100
	maxPrograms  = 4096
)

// celCache compiles conditions and selectors once.
type celCache struct {
	once       sync.Once
	condEnv    *cel.Env
	selectEnv  *cel.Env
	err        error
	mu         sync.Mutex
	conditions map[string]compiled
	selectors  map[string]compiled
}

type compiled struct {
	program cel.Program
	err     error
}

func newCELCache() *celCache {
	return &celCache{conditions: map[string]compiled{}, selectors: map[string]compiled{}}
}

// environments builds both environments at the first use: they are costly, and many pipelines need none.
func (c *celCache) environments() error {
	c.once.Do(func() {
		parse := cel.Function("parseJson",
			cel.Overload("parse_json", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(parseJSON)))
		limits := []cel.EnvOption{parse, cel.ParserExpressionSizeLimit(maxSource), cel.ParserRecursionLimit(maxRecursion)}
		object := cel.MapType(cel.StringType, cel.DynType)
		maps := cel.MapType(cel.StringType, object)
		c.condEnv, c.err = cel.NewEnv(append(limits,
			cel.Variable("inputs", maps), cel.Variable("outputs", maps))...)
		if c.err != nil {
			return
		}
		c.selectEnv, c.err = cel.NewEnv(append(limits,
			cel.Variable("string_value", cel.StringType), cel.Variable("number_value", cel.DoubleType),
			cel.Variable("bool_value", cel.BoolType), cel.Variable("null_value", cel.NullType),
			cel.Variable("list_value", cel.ListType(cel.DynType)), cel.Variable("struct_value", object))...)
	})
	return c.err
}

// compile gives the program for a source, from the cache where it can.
func (c *celCache) compile(cache map[string]compiled, pick func() *cel.Env, src string) (cel.Program, error) {
	if err := c.environments(); err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	c.mu.Lock()
	got, ok := cache[src]
	c.mu.Unlock()
	if ok {
		return got.program, got.err
	}
	got.program, got.err = build(pick(), src)
	c.mu.Lock()
	if len(cache) >= maxPrograms {
		clear(cache)
	}
	cache[src] = got
	c.mu.Unlock()
	return got.program, got.err
}

// build checks a source and plans it. What is planned is the unchecked form: the checker settles on one overload for a
// conversion such as int(inputs.parameter_values['x']), whose argument's type is known only when it is evaluated.
func build(env *cel.Env, src string) (cel.Program, error) {
	parsed, issues := env.Parse(src)
	if issues != nil && issues.Err() != nil {
		return nil, issues.Err()
	}
	if _, issues := env.Check(parsed); issues != nil && issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(parsed, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
}

// condition decides a condition.
func (c *celCache) condition(src string, vars map[string]any) (bool, error) {
	program, err := c.compile(c.conditions, func() *cel.Env { return c.condEnv }, src)
	if err != nil {
		return false, fmt.Errorf("condition %q: %w", short(src), err)
	}
	out, _, err := program.Eval(vars)
	if err != nil {
		return false, fmt.Errorf("condition %q: %w", short(src), err)
	}
	b, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("condition %q: gives %v, which is neither true nor false", short(src), out.Value())
	}
	return b, nil
}

// selectFrom evaluates an expression over a value.
func (c *celCache) selectFrom(src string, value any) (any, error) {
	program, err := c.compile(c.selectors, func() *cel.Env { return c.selectEnv }, src)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", short(src), err)
	}
	value = normalise(value)
	vars := map[string]any{"string_value": text(value)}
	switch v := value.(type) {
	case int64, float64:
		vars["number_value"] = forCEL(v)
	case bool:
		vars["bool_value"] = v
	case nil:
		vars["null_value"] = types.NullValue
	case []any:
		vars["list_value"] = forCEL(v)
	case map[string]any:
		vars["struct_value"] = forCEL(v)
	}
	out, _, err := program.Eval(vars)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", short(src), err)
	}
	result, err := fromCEL(out)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", short(src), err)
	}
	return result, nil
}

// Checker says what is wrong with sources of conditions and selectors, without evaluating them.
type Checker struct{ cache *celCache }

// NewChecker gives a Checker; it is safe for concurrent use.
func NewChecker() *Checker { return &Checker{newCELCache()} }

// Condition checks the source of a trigger condition.
func (c *Checker) Condition(src string) error {
	_, err := c.cache.compile(c.cache.conditions, func() *cel.Env { return c.cache.condEnv }, src)
	return err
}

// Selector checks the source of a parameter expression selector.
func (c *Checker) Selector(src string) error {
	_, err := c.cache.compile(c.cache.selectors, func() *cel.Env { return c.cache.selectEnv }, src)
	return err
}

// conditionVariables gives what a condition may read: the fields of KFP's ExecutorInput.
func conditionVariables(env expr.Env) map[string]any {
	parameters := map[string]any{}
	for name, v := range lookupMap(env, "inputs", "parameters") {
		if v != nil {
			parameters[name] = forCEL(normalise(v))
		}
	}
	lists := map[string]any{}
	for name, list := range lookupArtifacts(env, "inputs") {
		items := make([]any, len(list))
		for i, a := range list {
			items[i] = map[string]any{
				"name": a.Name, "uri": a.URI, "metadata": forCEL(normalise(a.Metadata)), "custom_path": a.CustomPath,
				"type": map[string]any{"schema_title": a.Type, "schema_version": a.TypeVersion},
			}
		}
		lists[name] = map[string]any{"artifacts": items}
	}
	return map[string]any{
		"inputs":  map[string]any{"parameter_values": parameters, "artifacts": lists},
		"outputs": map[string]any{},
	}
}

// forCEL gives CEL the numbers that KFP gives it: all of them are doubles.
func forCEL(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = forCEL(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = forCEL(e)
		}
		return out
	case nil:
		return types.NullValue
	}
	return v
}

// parseJSON is KFP's function of that name.
func parseJSON(arg ref.Val) ref.Val {
	s, ok := arg.Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return types.NewErr("parseJson: %s", err)
	}
	return types.DefaultTypeAdapter.NativeToValue(forCEL(v))
}

var jsonValue = reflect.TypeFor[*structpb.Value]()

// fromCEL turns a result into a JSON value.
func fromCEL(out ref.Val) (any, error) {
	if types.IsUnknownOrError(out) {
		return nil, fmt.Errorf("gives %v", out)
	}
	v, err := out.ConvertToNative(jsonValue)
	if err != nil {
		return nil, fmt.Errorf("gives a %s, which is no JSON value: %w", out.Type().TypeName(), err)
	}
	pb, ok := v.(*structpb.Value)
	if !ok {
		return nil, fmt.Errorf("gives a %s, which is no JSON value", out.Type().TypeName())
	}
	return normalise(pb.AsInterface()), nil
}
