package argo

import (
	corev1 "k8s.io/api/core/v1"
)

// Template is something that can be run. At most one of its kinds is set.
type Template struct {
	Name    string  `json:"name,omitempty"`
	Inputs  Inputs  `json:"inputs,omitzero"`
	Outputs Outputs `json:"outputs,omitzero"`

	// The kinds.
	Container    *corev1.Container     `json:"container,omitempty"`
	ContainerSet *ContainerSetTemplate `json:"containerSet,omitempty"`
	Script       *ScriptTemplate       `json:"script,omitempty"`
	Resource     *ResourceTemplate     `json:"resource,omitempty"`
	Steps        []ParallelSteps       `json:"steps,omitempty"`
	DAG          *DAGTemplate          `json:"dag,omitempty"`
	Suspend      *SuspendTemplate      `json:"suspend,omitempty"`
	Data         *Data                 `json:"data,omitempty"`
	HTTP         *HTTP                 `json:"http,omitempty"`
	Plugin       *Any                  `json:"plugin,omitempty"`

	// How it runs.
	Daemon                *bool            `json:"daemon,omitempty"`
	ActiveDeadlineSeconds *IntOrString     `json:"activeDeadlineSeconds,omitempty"`
	Timeout               string           `json:"timeout,omitempty"`
	PendingTimeout        string           `json:"pendingTimeout,omitempty"`
	RetryStrategy         *RetryStrategy   `json:"retryStrategy,omitempty"`
	Parallelism           *int64           `json:"parallelism,omitempty"`
	FailFast              *bool            `json:"failFast,omitempty"`
	Synchronization       *Synchronization `json:"synchronization,omitempty"`
	Memoize               *Memoize         `json:"memoize,omitempty"`
	Metrics               *Metrics         `json:"metrics,omitempty"`

	// Its pod.
	Metadata                     Metadata                     `json:"metadata,omitzero"`
	Annotations                  map[string]string            `json:"annotations,omitempty"`
	ArchiveLocation              *ArtifactLocation            `json:"archiveLocation,omitempty"`
	Volumes                      []corev1.Volume              `json:"volumes,omitempty"`
	InitContainers               []UserContainer              `json:"initContainers,omitempty"`
	Sidecars                     []UserContainer              `json:"sidecars,omitempty"`
	NodeSelector                 map[string]string            `json:"nodeSelector,omitempty"`
	Affinity                     *corev1.Affinity             `json:"affinity,omitempty"`
	Tolerations                  []corev1.Toleration          `json:"tolerations,omitempty"`
	SchedulerName                string                       `json:"schedulerName,omitempty"`
	PriorityClassName            string                       `json:"priorityClassName,omitempty"`
	ServiceAccountName           string                       `json:"serviceAccountName,omitempty"`
	AutomountServiceAccountToken *bool                        `json:"automountServiceAccountToken,omitempty"`
	Executor                     *ExecutorConfig              `json:"executor,omitempty"`
	HostAliases                  []corev1.HostAlias           `json:"hostAliases,omitempty"`
	SecurityContext              *corev1.PodSecurityContext   `json:"securityContext,omitempty"`
	PodSpecPatch                 string                       `json:"podSpecPatch,omitempty"`
	PodResources                 *corev1.ResourceRequirements `json:"podResources,omitempty"`
	ResourceClaims               []corev1.PodResourceClaim    `json:"resourceClaims,omitempty"`
}

// UserContainer is a container beside the main one.
type UserContainer struct {
	corev1.Container   `json:",inline"`
	MirrorVolumeMounts *bool `json:"mirrorVolumeMounts,omitempty"`
}

// ScriptTemplate is a container that is given a source text as a file.
type ScriptTemplate struct {
	corev1.Container `json:",inline"`
	Source           string `json:"source"`
}

// ContainerSetTemplate is several containers in one pod, with an order among them.
type ContainerSetTemplate struct {
	Containers    []ContainerNode      `json:"containers"`
	VolumeMounts  []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	RetryStrategy *ContainerSetRetry   `json:"retryStrategy,omitempty"`
}

// ContainerNode is a container of a set.
type ContainerNode struct {
	corev1.Container `json:",inline"`
	Dependencies     []string `json:"dependencies,omitempty"`
}

// ContainerSetRetry says how often a container of a set is started again.
type ContainerSetRetry struct {
	Duration string       `json:"duration,omitempty"`
	Retries  *IntOrString `json:"retries"`
}

// ResourceTemplate acts on a Kubernetes object.
type ResourceTemplate struct {
	Action            string        `json:"action"`
	MergeStrategy     string        `json:"mergeStrategy,omitempty"`
	Manifest          string        `json:"manifest,omitempty"`
	ManifestFrom      *ManifestFrom `json:"manifestFrom,omitempty"`
	SetOwnerReference bool          `json:"setOwnerReference,omitempty"`
	SuccessCondition  string        `json:"successCondition,omitempty"`
	FailureCondition  string        `json:"failureCondition,omitempty"`
	Flags             []string      `json:"flags,omitempty"`
}

// ManifestFrom takes a resource's manifest from an artifact.
type ManifestFrom struct {
	Artifact *Artifact `json:"artifact"`
}

// SuspendTemplate waits for its duration, or for a person.
type SuspendTemplate struct {
	Duration string `json:"duration,omitempty"`
}

// Data lists artifacts and transforms the list.
type Data struct {
	Source         DataSource           `json:"source"`
	Transformation []TransformationStep `json:"transformation"`
}

// DataSource says which artifacts Data lists.
type DataSource struct {
	ArtifactPaths *ArtifactPaths `json:"artifactPaths,omitempty"`
}

// ArtifactPaths are the paths below an artifact.
type ArtifactPaths struct {
	Artifact `json:",inline"`
}

// TransformationStep is an expression over the list so far, which it sees as data.
type TransformationStep struct {
	Expression string `json:"expression"`
}

// HTTP is a request.
type HTTP struct {
	Method             string          `json:"method,omitempty"`
	URL                string          `json:"url"`
	Headers            []HTTPHeader    `json:"headers,omitempty"`
	TimeoutSeconds     *int64          `json:"timeoutSeconds,omitempty"`
	SuccessCondition   string          `json:"successCondition,omitempty"`
	Body               string          `json:"body,omitempty"`
	BodyFrom           *HTTPBodySource `json:"bodyFrom,omitempty"`
	InsecureSkipVerify bool            `json:"insecureSkipVerify,omitempty"`
}

// HTTPHeader is a header with a value, or one from a Secret.
type HTTPHeader struct {
	Name      string            `json:"name"`
	Value     string            `json:"value,omitempty"`
	ValueFrom *HTTPHeaderSource `json:"valueFrom,omitempty"`
}

// HTTPHeaderSource names a Secret's key.
type HTTPHeaderSource struct {
	SecretKeyRef *corev1.SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// HTTPBodySource is a body of bytes.
type HTTPBodySource struct {
	Bytes []byte `json:"bytes,omitempty"`
}

// RetryStrategy says when a failed attempt is followed by another.
type RetryStrategy struct {
	Limit       *IntOrString   `json:"limit,omitempty"`
	RetryPolicy string         `json:"retryPolicy,omitempty"`
	Backoff     *Backoff       `json:"backoff,omitempty"`
	Affinity    *RetryAffinity `json:"affinity,omitempty"`
	Expression  string         `json:"expression,omitempty"`
}

// Backoff is the wait between attempts.
type Backoff struct {
	Duration    AnyString    `json:"duration,omitempty"`
	Factor      *IntOrString `json:"factor,omitempty"`
	MaxDuration AnyString    `json:"maxDuration,omitempty"`
	Cap         AnyString    `json:"cap,omitempty"`
}

// RetryAffinity keeps attempts on different machines.
type RetryAffinity struct {
	NodeAntiAffinity *struct{} `json:"nodeAntiAffinity,omitempty"`
}

// Synchronization are the locks that something holds while it runs.
type Synchronization struct {
	Semaphores []SemaphoreRef `json:"semaphores,omitempty"`
	Mutexes    []Mutex        `json:"mutexes,omitempty"`
}

// SemaphoreRef says where a semaphore's size is.
type SemaphoreRef struct {
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	Namespace       string                       `json:"namespace,omitempty"`
	Database        *SyncDatabaseRef             `json:"database,omitempty"`
}

// SyncDatabaseRef names a semaphore whose size is in the controller's database.
type SyncDatabaseRef struct {
	Key string `json:"key"`
}

// Mutex is a lock by name.
type Mutex struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Database  bool   `json:"database,omitempty"`
}

// Memoize reuses the outputs of earlier work with the same key.
type Memoize struct {
	Key    string `json:"key"`
	Cache  *Cache `json:"cache"`
	MaxAge string `json:"maxAge,omitempty"`
}

// Cache says where memoized outputs are kept.
type Cache struct {
	ConfigMap *CacheConfigMap `json:"configMap"`
}

// CacheConfigMap names the ConfigMap of a cache. Some manifests give a key, which means nothing.
type CacheConfigMap struct {
	Name     string `json:"name,omitempty"`
	Key      string `json:"key,omitempty"`
	Optional *bool  `json:"optional,omitempty"`
}

// Metrics are what a workflow or template emits.
type Metrics struct {
	Prometheus []Prometheus `json:"prometheus"`
}

// Prometheus is one metric.
type Prometheus struct {
	Name      string        `json:"name"`
	Labels    []MetricLabel `json:"labels,omitempty"`
	Help      string        `json:"help"`
	When      string        `json:"when,omitempty"`
	Gauge     *Gauge        `json:"gauge,omitempty"`
	Histogram *Histogram    `json:"histogram,omitempty"`
	Counter   *Counter      `json:"counter,omitempty"`
}

// MetricLabel is a label of a metric.
type MetricLabel struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Gauge is a metric that goes up and down.
type Gauge struct {
	Value     string `json:"value"`
	Realtime  *bool  `json:"realtime,omitempty"`
	Operation string `json:"operation,omitempty"`
}

// Histogram is a metric of buckets.
type Histogram struct {
	Value   string   `json:"value"`
	Buckets []Amount `json:"buckets"`
}

// Counter is a metric that only goes up.
type Counter struct {
	Value string `json:"value"`
}
