package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
)

// options are a submission's, and how it is run on this machine.
type options struct {
	submission.Options
	Runtime      string `json:"runtime,omitempty"`
	Sandbox      string `json:"sandbox,omitempty"`
	Limits       bool   `json:"limits,omitempty"`
	Parallelism  int64  `json:"parallelism,omitempty"`
	ArtifactRoot string `json:"artifactRoot,omitempty"`
	// Dir is the folder that sluice was started in: relative paths of the manifest start from it.
	Dir string `json:"dir,omitempty"`
}

// submitFlags are the flags of commands that take a manifest.
type submitFlags struct {
	options
	parameters     []string
	parameterFiles []string
	artifacts      []string
	files          []string
	templates      []string
	hooks          []string
	labels         []string
}

func (s *submitFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVarP(&s.parameters, "parameter", "p", nil, "give a parameter: `name=value` (repeatable)")
	f.StringArrayVar(&s.parameterFiles, "parameter-file", nil, "YAML or JSON `file` of parameters; -p goes before it")
	f.StringArrayVar(&s.artifacts, "artifact", nil, "give an input artifact: `name=URI`, the path of a file or folder, or a description {\"uri\": ..., \"metadata\": ...} (repeatable; several of a name are a list)")
	f.StringArrayVarP(&s.files, "file", "f", nil, "`file` of more documents that the manifest refers to: templates, ConfigMaps, Secrets (repeatable; - is standard input)")
	f.StringArrayVar(&s.templates, "templates", nil, "`folder` whose YAML and JSON files are given as with -f")
	f.StringArrayVar(&s.hooks, "hooks", nil, "`file` or folder of TaskHook documents (default: the folder hooks in $SLUICE_HOME)")
	f.StringVar(&s.Name, "name", "", "name of the run, in place of the manifest's")
	f.StringVar(&s.GenerateName, "generate-name", "", "beginning of the run's name, to which five letters are added")
	f.StringArrayVarP(&s.labels, "labels", "l", nil, "labels of the run: `key=value,...`")
	f.StringVar(&s.Namespace, "namespace", "", "namespace that the run is told to be in (default \"default\")")
	f.StringVar(&s.Entrypoint, "entrypoint", "", "template to start with, in place of the manifest's")
	f.StringVar(&s.ServiceAccount, "serviceaccount", "", "service account that the run is told to have")
	f.Var(&choice{to: &s.Runtime, of: []string{"process", "docker", "podman"}}, "runtime", "what tasks run in: process, or podman or docker for containers of their own images, see docs/runtimes.md (default process)")
	f.Var(&choice{to: &s.Sandbox, of: []string{"auto", "on", "off"}}, "sandbox", "a copy-on-write view of the machine for each task: auto, on or off (default auto)")
	f.BoolVar(&s.Limits, "limits", false, "enforce the CPU and memory limits that the manifest declares")
	f.Var((*count)(&s.Parallelism), "parallelism", "how many tasks may run at once, in place of the manifest's (0: as the manifest says)")
	f.StringVar(&s.ArtifactRoot, "artifact-root", "", "`folder` or URI that outputs are stored in (default artifacts/ in $SLUICE_HOME)")
	_ = c.RegisterFlagCompletionFunc("runtime", cobra.FixedCompletions([]string{"process", "docker", "podman"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions([]string{"auto", "on", "off"}, cobra.ShellCompDirectiveNoFileComp))
}

// settle turns the flags into options.
func (s *submitFlags) settle(a *app) (options, error) {
	o := s.options
	o.Parameters = map[string]any{}
	for _, name := range s.parameterFiles {
		doc, err := a.readFile(name)
		if err != nil {
			return o, err
		}
		values, err := parameterFile(doc)
		if err != nil {
			return o, err
		}
		maps.Copy(o.Parameters, values)
	}
	given, err := parameterFlags(s.parameters)
	if err != nil {
		return o, err
	}
	maps.Copy(o.Parameters, given)
	if o.Artifacts, err = artifactFlags(s.artifacts); err != nil {
		return o, err
	}
	if o.Labels, err = keyValues("--labels", s.labels); err != nil {
		return o, err
	}
	if o.ArtifactRoot != "" && !strings.Contains(o.ArtifactRoot, "://") {
		if o.ArtifactRoot, err = filepath.Abs(o.ArtifactRoot); err != nil {
			return o, usage("--artifact-root: %w", err)
		}
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return o, fmt.Errorf("find the working folder: %w", err)
	}
	return o, nil
}

// parameterFlags reads -p flags.
func parameterFlags(flags []string) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range flags {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage("-p %s: give it as name=value", p)
		}
		out[name] = submission.Given(value)
	}
	return out, nil
}

func parameterFile(doc store.Document) (map[string]any, error) {
	text, err := yaml.YAMLToJSON(doc.Data)
	if err != nil {
		return nil, usage("%s: is neither YAML nor JSON: %w", doc.Name, err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, usage("%s: must be a mapping of parameter names to values: %w", doc.Name, err)
	}
	if argo.IsArgo(doc.Data) || kfp.IsIR(doc.Data) || values["apiVersion"] != nil && values["kind"] != nil {
		return nil, usage("%s: is a manifest, not a mapping of parameter names to values; give other documents with -f", doc.Name)
	}
	for k, v := range values {
		values[k] = submission.Plain(v)
	}
	return values, nil
}

// keyValues reads "a=b,c=d" flags.
func keyValues(flag string, texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			k, v, ok := strings.Cut(strings.TrimSpace(part), "=")
			if !ok || k == "" {
				return nil, usage("%s %s: give it as key=value", flag, part)
			}
			out[k] = v
		}
	}
	return out, nil
}

// readFile reads a file that the user named; "-" is standard input.
func (a *app) readFile(name string) (store.Document, error) {
	var data []byte
	var err error
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(a.Stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err
		}
		return store.Document{}, usage("%s: cannot be read: %w", name, err)
	}
	if data, err = utf8Text(data); err != nil {
		return store.Document{}, usage("%s: %w", name, err)
	}
	return store.Document{Name: name, Data: data}, nil
}

// utf8Text gives a text in UTF-8: some systems' editors and shells write UTF-16, with a byte order mark.
func utf8Text(data []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("is no text in UTF-8: it has zero bytes; save it as UTF-8")
	default:
		return data, nil
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return []byte(string(utf16.Decode(units))), nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readFolder reads the manifests of a folder and of those below it, by name.
func (a *app) readFolder(name string) ([]store.Document, error) {
	files, err := manifestsIn(name)
	if err != nil {
		return nil, err
	}
	var docs []store.Document
	for _, f := range files {
		doc, err := a.readFile(f)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

func manifestsIn(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, usage("folder %s: %w", folder, err)
	}
	return files, nil
}

// read reads everything that a submission names: the manifest, what it refers to, and hooks.
func (s *submitFlags) read(a *app, file string) (store.Submission, error) {
	var sub store.Submission
	main, err := a.readFile(file)
	if err != nil {
		return sub, err
	}
	sub.Documents = []store.Document{main}
	others, err := s.others(a)
	if err != nil {
		return sub, err
	}
	sub.Documents = append(sub.Documents, others...)
	sub.Hooks, err = s.readHooks(a)
	return sub, err
}

// others reads the documents of -f and --templates.
func (s *submitFlags) others(a *app) ([]store.Document, error) {
	var docs []store.Document
	for _, name := range s.files {
		doc, err := a.readFile(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	for _, folder := range s.templates {
		in, err := a.readFolder(folder)
		if err != nil {
			return nil, err
		}
		docs = append(docs, in...)
	}
	return docs, nil
}

// readHooks reads the hook documents: those of --hooks, else those of the home folder.
func (s *submitFlags) readHooks(a *app) ([]store.Document, error) {
	names := s.hooks
	if len(names) == 0 {
		if !isFolder(a.folder("hooks")) {
			return nil, nil
		}
		names = []string{a.folder("hooks")}
	}
	var docs []store.Document
	for _, name := range names {
		abs, err := filepath.Abs(name) // files that a hook names are beside it, also when it is resumed elsewhere
		if err != nil {
			return nil, usage("%s: %w", name, err)
		}
		if isFolder(abs) {
			in, err := a.readFolder(abs)
			if err != nil {
				return nil, err
			}
			docs = append(docs, in...)
			continue
		}
		doc, err := a.readFile(abs)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// count is a flag that takes a whole number from 0.
type count int64

func (c *count) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no whole number from 0", text)
	}
	*c = count(v)
	return nil
}

func (c *count) String() string { return strconv.FormatInt(int64(*c), 10) }
func (*count) Type() string     { return "int" }
