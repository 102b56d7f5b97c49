package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// flags are those of kubectl that mean something here.
type flags struct {
	namespace, selector, fieldSelector, cascade, subresource string
	all, force, now, ignoreNotFound, wait, dryRun            bool
	gracePeriod                                              int64
	words                                                    []string
}

func parseFlags(args []string) (flags, error) {
	f := flags{}
	set := pflag.NewFlagSet("flags", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVarP(&f.namespace, "namespace", "n", "", "")
	set.StringVarP(&f.selector, "selector", "l", "", "")
	set.StringVar(&f.fieldSelector, "field-selector", "", "")
	set.StringVar(&f.cascade, "cascade", "background", "")
	set.StringVar(&f.subresource, "subresource", "", "")
	set.BoolVar(&f.all, "all", false, "")
	set.BoolVar(&f.force, "force", false, "")
	set.BoolVar(&f.now, "now", false, "")
	set.BoolVar(&f.ignoreNotFound, "ignore-not-found", false, "")
	set.BoolVar(&f.wait, "wait", true, "")
	set.Int64Var(&f.gracePeriod, "grace-period", -1, "")
	dry := set.String("dry-run", "none", "")
	// What these ask for is so anyway, or makes no difference here.
	set.Bool("server-side", true, "")
	set.Bool("force-conflicts", true, "")
	set.Bool("overwrite", true, "")
	set.Bool("save-config", false, "")
	set.String("field-manager", "", "")
	set.String("validate", "", "")
	set.Lookup("validate").NoOptDefVal = "true"
	set.Lookup("cascade").NoOptDefVal = "background"
	set.Lookup("dry-run").NoOptDefVal = "server"
	if err := set.Parse(args); err != nil {
		return f, fmt.Errorf("flags of a resource template: %w; here are known: %s", err, strings.Join(flagNames(set), ", "))
	}
	if *dry == "client" {
		return f, errors.New("flags of a resource template: --dry-run=client is not known here; use server")
	}
	f.dryRun = *dry == "server"
	f.words = set.Args()
	return f, nil
}

func flagNames(set *pflag.FlagSet) []string {
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

func (f flags) dry() []string {
	if f.dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (f flags) grace() *int64 {
	seconds := f.gracePeriod
	switch {
	case f.now:
		seconds = 1
	case seconds < 0 && f.force:
		seconds = 0
	case seconds < 0:
		return nil
	}
	return &seconds
}

func (f flags) propagation() *metav1.DeletionPropagation {
	p := metav1.DeletePropagationBackground
	switch f.cascade {
	case "foreground":
		p = metav1.DeletePropagationForeground
	case "orphan", "false":
		p = metav1.DeletePropagationOrphan
	}
	return &p
}

// read finds out which objects the deed is about: kubectl's rules.
func (d *deed) read(action, manifest string, args []string) error {
	var err error
	if d.flags, err = parseFlags(args); err != nil {
		return err
	}
	if strings.TrimSpace(manifest) == "" && len(args) == 0 {
		return errors.New("a resource template needs at least one of flags or manifest")
	}
	var objects []*unstructured.Unstructured
	if action == "patch" {
		if d.patch, err = yaml.YAMLToJSON([]byte(manifest)); err != nil {
			return fmt.Errorf("read the patch: %w", err)
		}
		// A patch names its object itself, unless the flags do.
		if len(d.flags.words) == 0 {
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(d.patch); err != nil {
				return fmt.Errorf("read the patch: %w", err)
			}
			objects = append(objects, o)
		}
	} else if objects, err = parseObjects(manifest); err != nil {
		return err
	}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		mapping, err := d.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return fmt.Errorf("find the kind %s: %w", gvk.Kind, err)
		}
		d.targets = append(d.targets, target{mapping: mapping, namespace: d.namespace(o.GetNamespace()), name: o.GetName(), object: o})
	}
	return d.readWords(action)
}

// namespace is that of an object: as the manifest says, else the flags, else the workflow's.
func (d *deed) namespace(manifest string) string {
	switch {
	case manifest != "":
		return manifest
	case d.flags.namespace != "":
		return d.flags.namespace
	}
	return d.run.Namespace
}

func parseObjects(manifest string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		data, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		out = append(out, o)
	}
}

// readWords takes objects from the flags: TYPE NAME..., TYPE/NAME..., or TYPE with a selector.
func (d *deed) readWords(action string) error {
	words := d.flags.words
	if len(words) == 0 {
		return nil
	}
	if strings.Contains(words[0], "/") {
		for _, w := range words {
			kind, name, ok := strings.Cut(w, "/")
			if !ok || name == "" {
				return fmt.Errorf("flags of a resource template: %q should be TYPE/NAME", w)
			}
			if err := d.add(kind, name); err != nil {
				return err
			}
		}
		return nil
	}
	names := words[1:]
	if len(names) == 0 {
		if d.flags.selector == "" && d.flags.fieldSelector == "" && !d.flags.all {
			return fmt.Errorf("flags of a resource template: %s needs a name or a selector", words[0])
		}
		if action != "delete" {
			return fmt.Errorf("resource action %s is about one object: give its name", action)
		}
		return d.add(words[0], "")
	}
	for _, name := range names {
		if err := d.add(words[0], name); err != nil {
			return err
		}
	}
	return nil
}

func (d *deed) add(kind, name string) error {
	mapping, err := resolve(d.mapper, kind)
	if err != nil {
		return fmt.Errorf("flags of a resource template: find the type %s: %w", kind, err)
	}
	d.targets = append(d.targets, target{mapping: mapping, namespace: d.namespace(""), name: name})
	return nil
}

// resolve finds a type by what people call it: "pod", "deploy", "jobs.batch", "Workflow".
func resolve(mapper meta.RESTMapper, text string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(text))
	var gvk schema.GroupVersionKind
	var err error
	if full != nil {
		gvk, err = mapper.KindFor(*full)
	}
	if full == nil || err != nil {
		gvk, err = mapper.KindFor(short.WithVersion(""))
	}
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}
