package submission

import (
	"encoding/json"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// Given is a value from the command line: a text, until the type of its parameter is known. In JSON it is an object
// with one key that no manifest uses.
type Given string

const givenKey = "sluice.dev/given"

// MarshalJSON keeps the difference between -p a=1 and {"a": "1"} of a parameter file.
func (g Given) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{givenKey: string(g)})
}

// ParametersFromJSON is what options.Parameters are after a round through JSON.
func ParametersFromJSON(m map[string]any) {
	for k, v := range m {
		if o, ok := v.(map[string]any); ok && len(o) == 1 {
			if text, ok := o[givenKey].(string); ok {
				m[k] = Given(text)
			}
		}
	}
}

// Typed turns a value of the command line into one of a parameter's type: JSON where that is no text.
func Typed(v any, typ program.Type) any {
	text, ok := v.(Given)
	if !ok {
		return v
	}
	if typ == program.Any || typ == program.String {
		return string(text)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil || d.More() {
		return string(text) // the language says what is wrong with it
	}
	return Plain(value)
}

// Plain turns json.Number into int64 or float64, all through a value.
func Plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil {
			if i := int64(f); float64(i) == f {
				return i
			}
			return f
		}
		return v.String()
	case []any:
		for i := range v {
			v[i] = Plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = Plain(v[k])
		}
	}
	return v
}
