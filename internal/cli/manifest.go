package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

// manifest is a submission that has been read and compiled, in whichever language it is.
type manifest struct {
	language string // "argo" or "kfp"
	program  *program.Program
	lang     expr.Language
	// name is the run's fixed name; generate the beginning of one that is still to be made up.
	name, generate string
	namespace      string
	title          string
	// parameters are what the run starts with.
	parameters map[string]any
	// project gives the run in the form of its own tools.
	project func(*engine.State) (any, error)

	secrets, configMaps map[string]map[string]string
	warnings            []string
}

// refusal is a manifest that is wrong. object, where there is one, is the run as its own tools would show it.
type refusal struct {
	err    error
	object any
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

// compile reads a submission. Its errors list everything that is wrong, a line each.
func compile(sub store.Submission, opts options) (*manifest, error) {
	main := sub.Documents[0]
	switch {
	case argo.IsArgo(main.Data):
		return withDefaults(compileArgo(sub.Documents, opts))
	case kfp.IsIR(main.Data):
		return withDefaults(compileKFP(sub.Documents, opts))
	}
	// Something else: Argo's reader says best what is wrong with YAML that should be a Kubernetes object.
	if _, err := argo.Load(argo.Source{Name: main.Name, Data: main.Data}, nil); err != nil {
		return nil, refusal{err: err}
	}
	return nil, refusal{err: fmt.Errorf("%s: is neither an Argo manifest (apiVersion: argoproj.io/v1alpha1) nor a compiled Kubeflow pipeline; give one of these", main.Name)}
}

func withDefaults(m *manifest, err error) (*manifest, error) {
	if err == nil && m.namespace == "" {
		m.namespace = "default"
	}
	return m, err
}

// companions reads the ConfigMaps and Secrets among documents that no front end has read.
func companions(docs []store.Document) (configMaps, secrets map[string]map[string]string, err error) {
	configMaps, secrets = map[string]map[string]string{}, map[string]map[string]string{}
	var faults []error
	for _, doc := range docs {
		d := yaml.NewDecoder(bytes.NewReader(doc.Data))
		for {
			var o struct {
				Kind       string
				Metadata   struct{ Name string }
				Data       map[string]string
				StringData map[string]string `yaml:"stringData"`
			}
			err := d.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", doc.Name, err))
				break
			}
			switch o.Kind {
			case "ConfigMap":
				configMaps[o.Metadata.Name] = o.Data
			case "Secret":
				values := map[string]string{}
				for k, v := range o.Data {
					text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v))
					if err != nil {
						faults = append(faults, fmt.Errorf("%s: Secret %s: data.%s is not base64; use stringData for plain text", doc.Name, o.Metadata.Name, k))
					}
					values[k] = string(text)
				}
				maps.Copy(values, o.StringData)
				secrets[o.Metadata.Name] = values
			}
		}
	}
	return configMaps, secrets, errors.Join(faults...)
}

// typed turns a value of the command line into one of a parameter's type: JSON where that is no text.
func typed(v any, typ program.Type) any {
	text, ok := v.(given)
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
	return plain(value)
}
