package kfp

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// claimAction recognises the components with which kfp-kubernetes makes and deletes volume claims. Upstream's driver acts
// on them; their images do not exist.
func claimAction(spec *ContainerSpec) string {
	if spec == nil {
		return ""
	}
	switch strings.TrimPrefix(spec.Image, "docker.io/") {
	case "argostub/createpvc":
		return "create"
	case "argostub/deletepvc":
		return "delete"
	}
	return ""
}

// claim compiles such a component into a task that acts on a Kubernetes object: {"action", "manifest"}, the manifest a
// JSON text whose parameters are put in by the language's pod patch form.
func claim(t *program.Template, spec *ContainerSpec) {
	action := claimAction(spec)
	manifest := map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
	parameter := func(name string) map[string]any { return map[string]any{"$parameter": name} }
	if action == "delete" {
		manifest["metadata"] = map[string]any{"name": parameter("pvc_name")}
	} else {
		manifest["metadata"] = map[string]any{
			"name":        "{{$.claim_name}}",
			"annotations": parameter("annotations"),
		}
		manifest["spec"] = map[string]any{
			"accessModes":      parameter("access_modes"),
			"resources":        map[string]any{"requests": map[string]any{"storage": parameter("size")}},
			"storageClassName": parameter("storage_class_name"),
			"volumeName":       parameter("volume_name"),
			"dataSource":       parameter("data_source"),
		}
	}
	resource := map[string]any{"action": action, "manifest": patchText(manifest)}
	if action == "delete" { // a claim stays as long as pods that have ended mount it, which may be as long as the run
		resource["flags"] = []any{"--wait=false"}
	}
	t.Task = &program.Body{Kind: program.Resource, Resource: toJSON(resource)}
	for i := range t.Outputs.Parameters {
		t.Outputs.Parameters[i].Path, t.Outputs.Parameters[i].JSONPath = "", "{.metadata.name}"
	}
}
