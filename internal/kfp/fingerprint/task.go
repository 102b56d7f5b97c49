package fingerprint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Task is what is known of a task when a cache is asked.
type Task struct {
	// Template and Call are the author's own texts, as internal/kfp puts them into [program.Template.Source] and
	// [program.Call.Source] and hooks are shown them.
	Template, Call json.RawMessage
	// Parameters are the effective inputs; Defaulted names those that nobody gave.
	Parameters map[string]any
	Defaulted  []string
	// Artifacts are the identities of the input artifacts by input: whatever is the same for the same artifact, and for
	// no other.
	Artifacts map[string][]string
}

// hiddenInput is the prefix of inputs that internal/kfp adds for platform settings.
const hiddenInput = "sluice--"

// Of gives the fingerprint of a task, "" for one that has none: only containers are cached.
func Of(t Task) (string, error) {
	template, err := object(t.Template)
	if err != nil {
		return "", fmt.Errorf("fingerprint: template: %w", err)
	}
	call, err := object(t.Call)
	if err != nil {
		return "", fmt.Errorf("fingerprint: call: %w", err)
	}
	if key := text(field(field(call, "cachingOptions"), "cacheKey")); key != "" {
		return Custom(text(field(field(call, "componentRef"), "name")), key), nil
	}
	container, ok := field(field(template, "executor"), "container").(map[string]any)
	if !ok {
		return "", nil
	}
	component := field(template, "component")
	k := Key{
		InputParameterValues: map[string]any{}, InputArtifactNames: t.Artifacts,
		OutputArtifactsSpec: outputArtifacts(component), OutputParametersSpec: outputParameters(component),
		Image: text(field(container, "image")), CmdArgs: append(texts(field(container, "command")), texts(field(container, "args"))...),
		PVCNames: claims(field(template, "kubernetes"), t.Parameters),
	}
	for name, v := range t.Parameters {
		if v != nil && !slices.Contains(t.Defaulted, name) && !strings.HasPrefix(name, hiddenInput) {
			k.InputParameterValues[name] = v
		}
	}
	return k.Sum()
}

// outputArtifacts declares what the component gives, and the log that upstream publishes with it.
func outputArtifacts(component any) map[string]Artifact {
	out := map[string]Artifact{"executor-logs": {Name: "executor-logs", SchemaTitle: "system.Artifact"}}
	declared, _ := field(field(component, "outputDefinitions"), "artifacts").(map[string]any)
	for name, d := range declared {
		schema := field(d, "artifactType")
		a := Artifact{
			Name: name, SchemaTitle: text(field(schema, "schemaTitle")), SchemaURI: text(field(schema, "schemaUri")),
			InstanceSchema: text(field(schema, "instanceSchema")), SchemaVersion: text(field(schema, "schemaVersion")),
		}
		a.Metadata, _ = field(d, "metadata").(map[string]any)
		out[name] = a
	}
	return out
}

func outputParameters(component any) map[string]string {
	declared, _ := field(field(component, "outputDefinitions"), "parameters").(map[string]any)
	out := make(map[string]string, len(declared))
	for name, d := range declared {
		typ := text(field(d, "parameterType"))
		if typ == "" {
			typ = "PARAMETER_TYPE_ENUM_UNSPECIFIED"
		}
		out[name] = typ
	}
	return out
}

// claims names the volume claims that the task mounts, sorted: what it leaves there makes it differ.
func claims(kubernetes any, parameters map[string]any) []string {
	mounts, _ := field(kubernetes, "pvcMount").([]any)
	var out []string
	for i, m := range mounts {
		name, given := parameters[fmt.Sprintf("%spvcMount-%d", hiddenInput, i)]
		if !given {
			name = field(m, "constant")
		}
		if s := text(name); s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// object reads a JSON object; nothing is an empty one.
func object(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out map[string]any
	err := json.Unmarshal(raw, &out)
	return out, err
}

// field reads a field of a mapping under its name or its name_with_underscores; nil for none.
func field(v any, name string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if f, ok := m[name]; ok {
		return f
	}
	var snake strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			snake.WriteByte('_')
			r += 'a' - 'A'
		}
		snake.WriteRune(r)
	}
	return m[snake.String()]
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = text(e)
	}
	return out
}
