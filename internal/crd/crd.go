// Package crd makes the CustomResourceDefinitions of everything that Sluice keeps on a cluster from the Go types that read
// them: what the API server refuses and what the program refuses cannot drift apart. The generated files lie in
// deploy/crds.
package crd

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema/generate/build"
	"github.com/sluice-ml/sluice/internal/argo"
)

//go:generate go run ./generate ../..

// object is a JSON object that keeps no order: it is written with sorted keys, so that the output is the same every time.
type object = map[string]any

// kind is one definition.
type kind struct {
	group, name, plural string
	short               []string
	cluster             bool // not in a namespace
	typ                 reflect.Type
	description         string
	// subresource gives it a status that is written apart from the rest.
	subresource bool
	columns     []column
	change      func(schema object) error
}

// column is what kubectl get shows.
type column struct{ name, typ, path, description string }

// kinds are the definitions. Those of Argo have its names and columns. None of them has the status subresource: the argo CLI
// retries and resumes a workflow by an update of the whole object.
func kinds() []kind {
	age := column{"Age", "date", ".metadata.creationTimestamp", ""}
	hookColumns := []column{
		{"Points", "string", ".spec.points", "When it is asked; both where it does not say"},
		{"Order", "integer", ".spec.order", "Ascending before a task, descending after it"},
		{"Failure", "string", ".spec.failurePolicy", "What happens when it fails for good"},
		{"Ready", "string", ".status.conditions[?(@.type=='Ready')].status", "Whether the controller can use it"},
		age,
	}
	return []kind{
		{
			group: argo.Group, name: "Workflow", plural: "workflows", short: []string{"wf"}, typ: reflect.TypeFor[argo.Workflow](),
			columns: []column{
				{"Status", "string", ".status.phase", "Status of the workflow"},
				{"Age", "date", ".status.startedAt", "When the workflow was started"},
				{"Message", "string", ".status.message", "Why the workflow is in this condition"},
			},
		},
		{group: argo.Group, name: "WorkflowTemplate", plural: "workflowtemplates", short: []string{"wftmpl"}, typ: reflect.TypeFor[argo.WorkflowTemplate]()},
		{
			group: argo.Group, name: "ClusterWorkflowTemplate", plural: "clusterworkflowtemplates", short: []string{"clusterwftmpl", "cwft"},
			cluster: true, typ: reflect.TypeFor[argo.WorkflowTemplate](),
			description: "ClusterWorkflowTemplate is a named spec that workflows of every namespace refer to.",
		},
		{
			group: argo.Group, name: "CronWorkflow", plural: "cronworkflows", short: []string{"cwf", "cronwf"}, typ: reflect.TypeFor[argo.CronWorkflow](),
			columns: []column{
				{"Schedules", "string", ".spec.schedules", "When it starts workflows"},
				{"Suspended", "boolean", ".spec.suspend", "Whether it starts none at present"},
				{"Last", "date", ".status.lastScheduledTime", "When it last started one"},
				age,
			},
		},
		{
			group: v1alpha1.Group, name: v1alpha1.KindTaskHook, plural: "taskhooks", short: []string{"thook"}, typ: reflect.TypeFor[v1alpha1.TaskHook](),
			subresource: true, columns: hookColumns, change: hookSchema,
			description: "TaskHook registers a plugin that is asked before and after the tasks of workflows of its namespace.",
		},
		{
			group: v1alpha1.Group, name: v1alpha1.KindClusterTaskHook, plural: "clustertaskhooks", short: []string{"cthook"}, cluster: true,
			typ: reflect.TypeFor[v1alpha1.TaskHook](), subresource: true, columns: hookColumns, change: hookSchema,
			description: "ClusterTaskHook registers a plugin that is asked before and after the tasks of all workflows.",
		},
		{
			group: v1alpha1.Group, name: v1alpha1.KindRunJournal, plural: "runjournals", short: []string{"rj"}, typ: reflect.TypeFor[v1alpha1.RunJournal](),
			columns: []column{
				{"Workflow", "string", ".spec.workflow", "Whose it is"},
				{"Part", "string", ".spec.part", "What it holds"},
				{"From", "integer", ".spec.from", "Position of its first event"},
				{"Closed", "boolean", ".spec.closed", "Whether it is full"},
				age,
			},
			change: journalSchema,
		},
	}
}

// Files gives the definitions by file name. root is the folder of the module, for the comments of its types.
func Files(root string) (map[string][]byte, error) {
	comments := map[string]build.Comments{}
	for _, folder := range []string{"internal/argo", "api/v1alpha1"} {
		c, err := build.ReadComments(root + "/" + folder)
		if err != nil {
			return nil, err
		}
		comments[folder] = c
	}
	files := map[string][]byte{}
	for _, k := range kinds() {
		definition, err := k.definition(comments)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		text, err := yaml.Marshal(definition)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		files[k.group+"_"+k.plural+".yaml"] = append([]byte("# Generated from the Go types by make crds; do not edit.\n"), text...)
	}
	return files, nil
}

func (k kind) definition(comments map[string]build.Comments) (object, error) {
	schema := (&builder{comments: comments}).root(k.typ)
	if k.description != "" {
		schema["description"] = k.description
	}
	if k.change != nil {
		if err := k.change(schema); err != nil {
			return nil, err
		}
	}
	version := object{
		"name": "v1alpha1", "served": true, "storage": true,
		"schema": object{"openAPIV3Schema": schema},
	}
	if k.subresource {
		version["subresources"] = object{"status": object{}}
	}
	var columns []any
	for _, c := range k.columns {
		one := object{"name": c.name, "type": c.typ, "jsonPath": c.path}
		if c.description != "" {
			one["description"] = c.description
		}
		columns = append(columns, one)
	}
	if columns != nil {
		version["additionalPrinterColumns"] = columns
	}
	scope := "Namespaced"
	if k.cluster {
		scope = "Cluster"
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": k.plural + "." + k.group},
		"spec": object{
			"group": k.group, "scope": scope, "versions": []any{version},
			"names": object{
				"kind": k.name, "listKind": k.name + "List", "plural": k.plural, "singular": strings.ToLower(k.name), "shortNames": k.short,
			},
		},
	}, nil
}
