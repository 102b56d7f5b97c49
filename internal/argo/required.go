package argo

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// requiredFields are the fields without which an API server refuses an object of a type.
var requiredFields = map[reflect.Type][]string{
	reflect.TypeFor[Workflow]():                                 {"metadata", "spec"},
	reflect.TypeFor[WorkflowTemplate]():                         {"metadata", "spec"},
	reflect.TypeFor[CronWorkflow]():                             {"metadata", "spec"},
	reflect.TypeFor[WorkflowEventBinding]():                     {"metadata", "spec"},
	reflect.TypeFor[CronWorkflowSpec]():                         {"workflowSpec", "schedules"},
	reflect.TypeFor[StopStrategy]():                             {"expression"},
	reflect.TypeFor[LabelValueFrom]():                           {"expression"},
	reflect.TypeFor[Parameter]():                                {"name"},
	reflect.TypeFor[FileRef]():                                  {"path"},
	reflect.TypeFor[RawArtifact]():                              {"data"},
	reflect.TypeFor[GitArtifact]():                              {"repo"},
	reflect.TypeFor[HTTPArtifact]():                             {"url"},
	reflect.TypeFor[ArtifactoryArtifact]():                      {"url"},
	reflect.TypeFor[HDFSArtifact]():                             {"path"},
	reflect.TypeFor[OSSArtifact]():                              {"key"},
	reflect.TypeFor[GCSArtifact]():                              {"key"},
	reflect.TypeFor[AzureArtifact]():                            {"endpoint", "container", "blob"},
	reflect.TypeFor[NamedValue]():                               {"name", "value"},
	reflect.TypeFor[DAGTemplate]():                              {"tasks"},
	reflect.TypeFor[ContainerSetTemplate]():                     {"containers"},
	reflect.TypeFor[ContainerSetRetry]():                        {"retries"},
	reflect.TypeFor[ContainerNode]():                            {"name"},
	reflect.TypeFor[UserContainer]():                            {"name"},
	reflect.TypeFor[ResourceTemplate]():                         {"action"},
	reflect.TypeFor[ManifestFrom]():                             {"artifact"},
	reflect.TypeFor[Artifact]():                                 {"name"},
	reflect.TypeFor[ArtifactPaths]():                            {"name"},
	reflect.TypeFor[DAGTask]():                                  {"name"},
	reflect.TypeFor[HTTPHeader]():                               {"name"},
	reflect.TypeFor[Data]():                                     {"source", "transformation"},
	reflect.TypeFor[TransformationStep]():                       {"expression"},
	reflect.TypeFor[SyncDatabaseRef]():                          {"key"},
	reflect.TypeFor[Memoize]():                                  {"key", "cache"},
	reflect.TypeFor[Cache]():                                    {"configMap"},
	reflect.TypeFor[Metrics]():                                  {"prometheus"},
	reflect.TypeFor[Prometheus]():                               {"name", "help"},
	reflect.TypeFor[MetricLabel]():                              {"key", "value"},
	reflect.TypeFor[Gauge]():                                    {"value"},
	reflect.TypeFor[Counter]():                                  {"value"},
	reflect.TypeFor[Histogram]():                                {"value", "buckets"},
	reflect.TypeFor[corev1.EnvVar]():                            {"name"},
	reflect.TypeFor[corev1.Volume]():                            {"name"},
	reflect.TypeFor[corev1.VolumeMount]():                       {"name", "mountPath"},
	reflect.TypeFor[corev1.VolumeDevice]():                      {"name", "devicePath"},
	reflect.TypeFor[corev1.ContainerPort]():                     {"containerPort"},
	reflect.TypeFor[corev1.SecretKeySelector]():                 {"key"},
	reflect.TypeFor[corev1.ConfigMapKeySelector]():              {"key"},
	reflect.TypeFor[corev1.ObjectFieldSelector]():               {"fieldPath"},
	reflect.TypeFor[corev1.KeyToPath]():                         {"key", "path"},
	reflect.TypeFor[corev1.HostPathVolumeSource]():              {"path"},
	reflect.TypeFor[corev1.HTTPGetAction]():                     {"port"},
	reflect.TypeFor[corev1.TCPSocketAction]():                   {"port"},
	reflect.TypeFor[corev1.PersistentVolumeClaimVolumeSource](): {"claimName"},
}

// checkRequired reports required fields that are not there.
func (d *decoder) checkRequired(n *node, t reflect.Type, path string) {
	for _, field := range requiredFields[t] {
		if v := n.get(field); v == nil || v.kind == nullNode {
			d.report(n.mark, join(path, field), "is missing")
			d.missing = append(d.missing, join(path, field))
		}
	}
}
