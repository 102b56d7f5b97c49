// Package kfpoutput reads the file that a KFP component writes about its own outputs: ExecutorOutput, protojson.
package kfpoutput

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// output is ExecutorOutput with the names of both spellings that protojson reads, and its deprecated parameters.
type output struct {
	ParameterValues      map[string]any                 `json:"parameterValues"`
	SnakeParameterValues map[string]any                 `json:"parameter_values"`
	Parameters           map[string]map[string]any      `json:"parameters"`
	Artifacts            map[string]map[string][]record `json:"artifacts"`
}

// record is RuntimeArtifact.
type record struct {
	Name            string                    `json:"name"`
	URI             string                    `json:"uri"`
	Type            map[string]string         `json:"type"`
	Metadata        map[string]any            `json:"metadata"`
	Properties      map[string]map[string]any `json:"properties"`
	CustomProps     map[string]map[string]any `json:"customProperties"`
	CustomPath      string                    `json:"customPath"`
	SnakeCustomPath string                    `json:"custom_path"`
}

// ParseExecutorOutput reads an ExecutorOutput: parameter values with their JSON types (whole numbers are int64), and
// artifacts by output name. An empty file reports nothing. Fields that are not known are left alone: newer SDKs may
// write more. A parameter that is null counts as not reported.
func ParseExecutorOutput(data []byte) (parameters map[string]any, artifacts map[string][]program.Artifact, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out output
	if err := dec.Decode(&out); err != nil {
		return nil, nil, fmt.Errorf("it is no ExecutorOutput in JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, fmt.Errorf("it is no ExecutorOutput in JSON: something follows after it")
	}
	parameters = map[string]any{}
	for name, v := range out.Parameters {
		for kind, old := range v { // {"intValue": "1"}
			parameters[name] = oldValue(kind, old)
		}
	}
	for _, values := range []map[string]any{out.SnakeParameterValues, out.ParameterValues} {
		for name, v := range values {
			if v != nil {
				parameters[name] = normal(v)
			}
		}
	}
	artifacts = make(map[string][]program.Artifact, len(out.Artifacts))
	for name, list := range out.Artifacts {
		for field := range list {
			if field != "artifacts" {
				return nil, nil, fmt.Errorf("artifacts.%s: %q where \"artifacts\" is needed", name, field)
			}
		}
		for _, r := range list["artifacts"] {
			artifacts[name] = append(artifacts[name], r.artifact(name))
		}
	}
	return parameters, artifacts, nil
}

// artifact brings a record into the program's form. Store stays nil: where the bytes go is not for the component to say.
func (r record) artifact(output string) program.Artifact {
	a := program.Artifact{Name: r.Name, URI: r.URI, CustomPath: r.CustomPath}
	if a.Name == "" {
		a.Name = output
	}
	if a.CustomPath == "" {
		a.CustomPath = r.SnakeCustomPath
	}
	for _, key := range []string{"instanceSchema", "instance_schema", "schemaTitle", "schema_title", "schemaUri", "schema_uri"} {
		if a.Type == "" {
			a.Type = r.Type[key]
		}
	}
	for _, key := range []string{"schemaVersion", "schema_version"} {
		if a.TypeVersion == "" {
			a.TypeVersion = r.Type[key]
		}
	}
	metadata := map[string]any{}
	for _, old := range []map[string]map[string]any{r.Properties, r.CustomProps} {
		for k, v := range old {
			for kind, value := range v {
				metadata[k] = oldValue(kind, value)
			}
		}
	}
	for k, v := range r.Metadata {
		metadata[k] = normal(v)
	}
	if len(metadata) > 0 {
		a.Metadata = metadata
	}
	return a
}

// oldValue reads a value of the deprecated form; protojson writes its integers as texts.
func oldValue(kind string, v any) any {
	if s, ok := v.(string); ok && (kind == "intValue" || kind == "int_value") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
	}
	return normal(v)
}

// normal makes whole numbers int64, as the program keeps JSON values.
func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return int64(f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	}
	return v
}

// TaskPath is the path under which a task sees what lies at a URI: "gs://b/k" is "/gcs/b/k", "s3://b/k" is "/s3/b/k",
// "minio://b/k" is "/minio/b/k"; an absolute path is itself. It is empty for any other URI. The SDK does the same, so a
// component that chose an artifact's URI (dsl.get_uri) has left the bytes there.
func TaskPath(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	switch {
	case !ok && strings.HasPrefix(uri, "/"):
		return uri
	case !ok:
		return ""
	case scheme == "gs":
		return "/gcs/" + rest
	case scheme == "s3" || scheme == "minio":
		return "/" + scheme + "/" + rest
	}
	return ""
}
