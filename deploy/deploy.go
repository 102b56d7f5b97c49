// Package deploy holds what is installed on a cluster, and puts it together for sluice install. The folders are kustomize bases
// that work without it, too: crds, base, cluster and namespaced (which include both), impersonation.
package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed crds base cluster namespaced impersonation
var files embed.FS

// Options say what is installed. The zero value, with the images set, is a controller for all namespaces in the namespace
// [Namespace].
type Options struct {
	// Namespaced makes a controller that works for its own namespace only.
	Namespaced bool
	// Namespace is where the controller runs; empty is [Namespace], with an InstanceID that and "-" and the ID.
	Namespace string
	// Image and ExecutorImage are of the controller, and of what is copied into every task.
	Image, ExecutorImage string
	// InstanceID makes a controller for the objects whose label workflows.argoproj.io/controller-instanceid is that: one of several of
	// a cluster, each in a namespace of its own.
	InstanceID string
	// Impersonation lets resource templates act with the rights of the workflows' service accounts.
	Impersonation bool
	// CRDsOnly leaves out everything but the CustomResourceDefinitions, NoCRDs those.
	CRDsOnly, NoCRDs bool
}

// Namespace is what the files say.
const Namespace = "sluice"

// Manifests gives the objects as YAML documents, in the order in which they can be made.
func Manifests(o Options) ([]byte, error) {
	if o.CRDsOnly && o.NoCRDs {
		return nil, errors.New("nothing is left")
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
		if o.InstanceID != "" {
			o.Namespace += "-" + o.InstanceID
		}
	}
	var out bytes.Buffer
	add := func(text []byte) {
		out.WriteString("---\n")
		out.Write(bytes.TrimSpace(text))
		out.WriteByte('\n')
	}
	if !o.NoCRDs {
		names, err := fs.Glob(files, "crds/*.*_*.yaml")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := files.ReadFile(name)
			if err != nil {
				return nil, err
			}
			add(text)
		}
	}
	if o.CRDsOnly {
		return out.Bytes(), nil
	}
	folders := []string{"cluster", "base"}
	if o.Namespaced {
		folders = []string{"namespaced", "base"}
	}
	if o.Impersonation {
		folders = append(folders, "impersonation")
	}
	var objects []object
	for _, folder := range folders {
		more, err := read(folder)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	objects = slices.DeleteFunc(objects, func(x object) bool {
		other := "RoleBinding"
		if o.Namespaced {
			other = "ClusterRoleBinding"
		}
		return x.name() == "sluice-controller-impersonation" && x["kind"] == other
	})
	slices.SortStableFunc(objects, func(a, b object) int { return slices.Index(order, a.kind()) - slices.Index(order, b.kind()) })
	for _, x := range objects {
		if err := o.adapt(x); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(x)
		if err != nil {
			return nil, err
		}
		add(text)
	}
	return out.Bytes(), nil
}

// Lease is the name of the lease that controllers of an instance ID share; an empty ID is none.
func Lease(instance string) string {
	if instance == "" {
		return "sluice-controller"
	}
	return "sluice-controller-" + instance
}

// renameLease gives a role the right to another lease than the one in the files.
func renameLease(role object, name string) error {
	rules, _ := role["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		resources, _ := rule["resources"].([]any)
		if names, ok := rule["resourceNames"].([]any); ok && slices.Contains(resources, any("leases")) && len(names) == 1 {
			names[0] = name
			return nil
		}
	}
	return fmt.Errorf("the Role %s names no lease", role.name())
}

// order is that of the kinds: what others refer to comes first.
var order = []string{"Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "Service", "Deployment"}

type object map[string]any

func (x object) kind() string { return text(x["kind"]) }
func (x object) name() string { return text(at(x, "metadata")["name"]) }

func text(v any) string {
	s, _ := v.(string)
	return s
}

// at gives an object inside of objects; nil where there is none.
func at(x map[string]any, names ...string) map[string]any {
	for _, name := range names {
		x, _ = x[name].(map[string]any)
	}
	return x
}

// read gives the objects of a folder's own files, those of which kustomize makes use.
func read(folder string) ([]object, error) {
	names, err := fs.Glob(files, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, name := range names {
		if path.Base(name) == "kustomization.yaml" {
			continue
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for doc := range strings.SplitSeq(string(data), "\n---\n") {
			var x object
			if err := yaml.Unmarshal([]byte(doc), &x); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !slices.Contains(order, x.kind()) {
				return nil, fmt.Errorf("%s: kind %q has no place in the order", name, x.kind())
			}
			objects = append(objects, x)
		}
	}
	return objects, nil
}

// adapt sets the namespace and what the Deployment runs.
func (o Options) adapt(x object) error {
	meta := at(x, "metadata")
	if x.kind() == "Namespace" {
		meta["name"] = o.Namespace
	}
	if meta["namespace"] != nil {
		meta["namespace"] = o.Namespace
	}
	subjects, _ := x["subjects"].([]any)
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok {
			subject["namespace"] = o.Namespace
		}
	}
	if x.kind() == "ClusterRoleBinding" && (o.Namespaced || o.InstanceID != "") && o.Namespace != Namespace {
		meta["name"] = x.name() + "-" + o.Namespace // several such controllers must not take each other's binding
	}
	if x.kind() == "Role" && o.InstanceID != "" {
		if err := renameLease(x, Lease(o.InstanceID)); err != nil {
			return err
		}
	}
	if x.kind() != "Deployment" {
		return nil
	}
	containers, _ := at(x, "spec", "template", "spec")["containers"].([]any)
	if len(containers) != 1 {
		return errors.New("the Deployment does not have one container")
	}
	c, _ := containers[0].(map[string]any)
	args, _ := c["args"].([]any)
	c["image"] = o.Image
	for i, a := range args {
		if strings.HasPrefix(text(a), "--executor-image=") {
			args[i] = "--executor-image=" + o.ExecutorImage
		}
	}
	if o.Namespaced {
		args = append(args, "--namespaced")
	}
	if o.InstanceID != "" {
		args = append(args, "--instance-id="+o.InstanceID)
	}
	c["args"] = args
	return nil
}
