package argo

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API group and version of all Argo objects.
const (
	Group      = "argoproj.io"
	APIVersion = Group + "/v1alpha1"
)

// Workflow is one run, and what it shall do.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              WorkflowSpec    `json:"spec"`
	Status            *WorkflowStatus `json:"status,omitempty"`
}

// WorkflowTemplate is a named spec that workflows refer to. ClusterWorkflowTemplate has the same form.
type WorkflowTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              WorkflowSpec `json:"spec"`
	Status            *Any         `json:"status,omitempty"`
}

// CronWorkflow starts workflows by a schedule.
type CronWorkflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              CronWorkflowSpec `json:"spec"`
	Status            *Any             `json:"status,omitempty"`
}

// CronWorkflowSpec says when and what a CronWorkflow starts.
type CronWorkflowSpec struct {
	WorkflowSpec               WorkflowSpec       `json:"workflowSpec"`
	WorkflowMetadata           *metav1.ObjectMeta `json:"workflowMetadata,omitempty"`
	Schedules                  []string           `json:"schedules"`
	Timezone                   string             `json:"timezone,omitempty"`
	When                       string             `json:"when,omitempty"`
	Suspend                    bool               `json:"suspend,omitempty"`
	ConcurrencyPolicy          string             `json:"concurrencyPolicy,omitempty"`
	StartingDeadlineSeconds    *int64             `json:"startingDeadlineSeconds,omitempty"`
	SuccessfulJobsHistoryLimit *int32             `json:"successfulJobsHistoryLimit,omitempty"`
	FailedJobsHistoryLimit     *int32             `json:"failedJobsHistoryLimit,omitempty"`
	StopStrategy               *StopStrategy      `json:"stopStrategy,omitempty"`
}

// StopStrategy ends a CronWorkflow for good when its expression is true.
type StopStrategy struct {
	Expression string `json:"expression"`
}

// WorkflowEventBinding starts a workflow when an event matches. It is read and checked, not run.
type WorkflowEventBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Event struct {
			Selector string `json:"selector"`
		} `json:"event"`
		Submit *struct {
			WorkflowTemplateRef WorkflowTemplateRef `json:"workflowTemplateRef"`
			metav1.ObjectMeta   `json:"metadata,omitzero"`
			Arguments           *Arguments `json:"arguments,omitempty"`
		} `json:"submit,omitempty"`
	} `json:"spec"`
}

// otherObject is an argoproj.io object that is read for its name only (task sets, task results, event sources).
type otherObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              *Any `json:"spec,omitempty"`
	Status            *Any `json:"status,omitempty"`
}

// WorkflowSpec is what a workflow does.
type WorkflowSpec struct {
	// What runs.
	Entrypoint          string               `json:"entrypoint,omitempty"`
	Templates           []Template           `json:"templates,omitempty"`
	TemplateDefaults    *Template            `json:"templateDefaults,omitempty"`
	WorkflowTemplateRef *WorkflowTemplateRef `json:"workflowTemplateRef,omitempty"`
	Arguments           Arguments            `json:"arguments,omitzero"`
	OnExit              string               `json:"onExit,omitempty"`
	Hooks               LifecycleHooks       `json:"hooks,omitempty"`

	// How it runs.
	Suspend               *bool            `json:"suspend,omitempty"`
	Shutdown              string           `json:"shutdown,omitempty"`
	ActiveDeadlineSeconds *int64           `json:"activeDeadlineSeconds,omitempty"`
	Priority              *int32           `json:"priority,omitempty"`
	Parallelism           *int64           `json:"parallelism,omitempty"`
	RetryStrategy         *RetryStrategy   `json:"retryStrategy,omitempty"`
	Synchronization       *Synchronization `json:"synchronization,omitempty"`
	Metrics               *Metrics         `json:"metrics,omitempty"`
	ExecutorPlugins       []ExecutorPlugin `json:"executorPlugins,omitempty"`

	WorkflowMetadata *WorkflowMetadata `json:"workflowMetadata,omitempty"`

	// What is kept and for how long.
	TTLStrategy           *TTLStrategy             `json:"ttlStrategy,omitempty"`
	PodGC                 *PodGC                   `json:"podGC,omitempty"`
	VolumeClaimGC         *VolumeClaimGC           `json:"volumeClaimGC,omitempty"`
	ArtifactGC            *WorkflowLevelArtifactGC `json:"artifactGC,omitempty"`
	ArchiveLogs           *bool                    `json:"archiveLogs,omitempty"`
	ArtifactRepositoryRef *ArtifactRepositoryRef   `json:"artifactRepositoryRef,omitempty"`

	// Pods.
	ServiceAccountName           string                            `json:"serviceAccountName,omitempty"`
	AutomountServiceAccountToken *bool                             `json:"automountServiceAccountToken,omitempty"`
	Executor                     *ExecutorConfig                   `json:"executor,omitempty"`
	Volumes                      []corev1.Volume                   `json:"volumes,omitempty"`
	VolumeClaimTemplates         []corev1.PersistentVolumeClaim    `json:"volumeClaimTemplates,omitempty"`
	NodeSelector                 map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity                     *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations                  []corev1.Toleration               `json:"tolerations,omitempty"`
	ImagePullSecrets             []corev1.LocalObjectReference     `json:"imagePullSecrets,omitempty"`
	HostNetwork                  *bool                             `json:"hostNetwork,omitempty"`
	DNSPolicy                    *corev1.DNSPolicy                 `json:"dnsPolicy,omitempty"`
	DNSConfig                    *corev1.PodDNSConfig              `json:"dnsConfig,omitempty"`
	SchedulerName                string                            `json:"schedulerName,omitempty"`
	PodPriorityClassName         string                            `json:"podPriorityClassName,omitempty"`
	HostAliases                  []corev1.HostAlias                `json:"hostAliases,omitempty"`
	SecurityContext              *corev1.PodSecurityContext        `json:"securityContext,omitempty"`
	PodSpecPatch                 string                            `json:"podSpecPatch,omitempty"`
	PodDisruptionBudget          *policyv1.PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
	PodMetadata                  *Metadata                         `json:"podMetadata,omitempty"`
	PodResources                 *corev1.ResourceRequirements      `json:"podResources,omitempty"`
	ResourceClaims               []corev1.PodResourceClaim         `json:"resourceClaims,omitempty"`
}

// WorkflowTemplateRef names a WorkflowTemplate, or a ClusterWorkflowTemplate.
type WorkflowTemplateRef struct {
	Name         string `json:"name,omitempty"`
	ClusterScope bool   `json:"clusterScope,omitempty"`
}

// WorkflowMetadata is added to the metadata of workflows made from a template.
type WorkflowMetadata struct {
	Labels      map[string]string         `json:"labels,omitempty"`
	Annotations map[string]string         `json:"annotations,omitempty"`
	LabelsFrom  map[string]LabelValueFrom `json:"labelsFrom,omitempty"`
}

// LabelValueFrom computes a label.
type LabelValueFrom struct {
	Expression string `json:"expression"`
}

// TTLStrategy says when an ended workflow is deleted.
type TTLStrategy struct {
	SecondsAfterCompletion *int32 `json:"secondsAfterCompletion,omitempty"`
	SecondsAfterSuccess    *int32 `json:"secondsAfterSuccess,omitempty"`
	SecondsAfterFailure    *int32 `json:"secondsAfterFailure,omitempty"`
}

// PodGC says when pods are deleted.
type PodGC struct {
	Strategy            string                `json:"strategy,omitempty"`
	LabelSelector       *metav1.LabelSelector `json:"labelSelector,omitempty"`
	DeleteDelayDuration string                `json:"deleteDelayDuration,omitempty"`
}

// VolumeClaimGC says when claims made from templates are deleted.
type VolumeClaimGC struct {
	Strategy string `json:"strategy,omitempty"`
}

// ArtifactGC says when artifacts are deleted.
type ArtifactGC struct {
	Strategy           string    `json:"strategy,omitempty"`
	PodMetadata        *Metadata `json:"podMetadata,omitempty"`
	ServiceAccountName string    `json:"serviceAccountName,omitempty"`
}

// WorkflowLevelArtifactGC is ArtifactGC with what concerns the workflow as a whole.
type WorkflowLevelArtifactGC struct {
	ArtifactGC            `json:",inline"`
	ForceFinalizerRemoval bool   `json:"forceFinalizerRemoval,omitempty"`
	PodSpecPatch          string `json:"podSpecPatch,omitempty"`
}

// ArtifactRepositoryRef names a repository in a ConfigMap.
type ArtifactRepositoryRef struct {
	ConfigMap string `json:"configMap,omitempty"`
	Key       string `json:"key,omitempty"`
}

// ExecutorConfig is about the executor's own part of a pod.
type ExecutorConfig struct {
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// ExecutorPlugin is a sidecar that carries out plugin templates.
type ExecutorPlugin struct {
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		Sidecar struct {
			AutomountServiceAccountToken bool             `json:"automountServiceAccountToken,omitempty"`
			Container                    corev1.Container `json:"container"`
		} `json:"sidecar"`
	} `json:"spec"`
}

// Metadata are labels and annotations of pods.
type Metadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}
