package submission

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-ml/sluice/internal/store"
)

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
