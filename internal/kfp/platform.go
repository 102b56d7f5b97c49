package kfp

// The types of this file are the PlatformSpec, and of its platforms the one that means something to us: "kubernetes",
// as the kfp-kubernetes extension writes it.

// PlatformSpec holds settings by platform. Those of platforms that are not ours are kept unread.
type PlatformSpec struct {
	Platforms map[string]Value `json:"platforms"`
	// Kubernetes is the platform "kubernetes", empty where there is none.
	Kubernetes SinglePlatformSpec `json:"-"`
}

// SinglePlatformSpec holds settings of one platform by executor label, and of the pipeline as a whole.
type SinglePlatformSpec struct {
	DeploymentSpec PlatformDeployment `json:"deploymentSpec"`
	Platform       string             `json:"platform"`
	Config         *Value             `json:"config"`
	PipelineConfig PipelineConfig     `json:"pipelineConfig"`
}

// PlatformDeployment holds settings by executor label.
type PlatformDeployment struct {
	Executors map[string]*KubernetesConfig `json:"executors"`
}

// PipelineConfig is about the pipeline as a whole; times are seconds, 0 is none.
type PipelineConfig struct {
	ResourceTTLOnCompletion int64      `json:"resourceTtlOnCompletion"`
	ResourceTTLOnSuccess    int64      `json:"resourceTtlOnSuccess"`
	ResourceTTLOnFailure    int64      `json:"resourceTtlOnFailure"`
	ActiveDeadlineSeconds   int64      `json:"activeDeadlineSeconds"`
	Workspace               *Workspace `json:"workspace"`
}

// Workspace asks for a volume that all tasks of a run share.
type Workspace struct {
	Size       string              `json:"size"`
	Kubernetes WorkspaceKubernetes `json:"kubernetes"`
}

// WorkspaceKubernetes patches the spec of the volume's claim.
type WorkspaceKubernetes struct {
	PVCSpecPatch map[string]any `json:"pvcSpecPatch"`
}

// KubernetesConfig holds the settings of one executor.
type KubernetesConfig struct {
	SecretAsVolume         []ObjectAsVolume         `json:"secretAsVolume"`
	SecretAsEnv            []SecretAsEnv            `json:"secretAsEnv"`
	PVCMount               []PVCMount               `json:"pvcMount"`
	NodeSelector           *NodeSelector            `json:"nodeSelector"`
	PodMetadata            *PodMetadata             `json:"podMetadata"`
	ImagePullSecret        []ImagePullSecret        `json:"imagePullSecret"`
	ImagePullPolicy        string                   `json:"imagePullPolicy"`
	ConfigMapAsVolume      []ObjectAsVolume         `json:"configMapAsVolume"`
	ConfigMapAsEnv         []ConfigMapAsEnv         `json:"configMapAsEnv"`
	ActiveDeadlineSeconds  int64                    `json:"activeDeadlineSeconds"`
	FieldPathAsEnv         []FieldPathAsEnv         `json:"fieldPathAsEnv"`
	Tolerations            []Toleration             `json:"tolerations"`
	GenericEphemeralVolume []GenericEphemeralVolume `json:"genericEphemeralVolume"`
	NodeAffinity           []NodeAffinity           `json:"nodeAffinity"`
	PodAffinity            []PodAffinity            `json:"podAffinity"`
	EnabledSharedMemory    *SharedMemory            `json:"enabledSharedMemory"`
	EmptyDirMounts         []EmptyDirMount          `json:"emptyDirMounts"`
	SecurityContext        *SecurityContext         `json:"securityContext"`
	InitContainers         []InitContainer          `json:"initContainers"`
}

// ObjectAsVolume mounts a Secret or a ConfigMap, named by one of its name fields.
type ObjectAsVolume struct {
	SecretName             string         `json:"secretName"`
	SecretNameParameter    *TaskParameter `json:"secretNameParameter"`
	ConfigMapName          string         `json:"configMapName"`
	ConfigMapNameParameter *TaskParameter `json:"configMapNameParameter"`
	MountPath              string         `json:"mountPath"`
	Optional               bool           `json:"optional"`
}

// SecretAsEnv sets environment variables from a Secret's keys.
type SecretAsEnv struct {
	SecretName          string         `json:"secretName"`
	SecretNameParameter *TaskParameter `json:"secretNameParameter"`
	KeyToEnv            []KeyToEnv     `json:"keyToEnv"`
	Optional            bool           `json:"optional"`
}

// ConfigMapAsEnv sets environment variables from a ConfigMap's keys.
type ConfigMapAsEnv struct {
	ConfigMapName          string         `json:"configMapName"`
	ConfigMapNameParameter *TaskParameter `json:"configMapNameParameter"`
	KeyToEnv               []KeyToEnv     `json:"keyToEnv"`
	Optional               bool           `json:"optional"`
}

// KeyToEnv names a key and the variable that it sets.
type KeyToEnv struct {
	SecretKey    string `json:"secretKey"`
	ConfigMapKey string `json:"configMapKey"`
	EnvVar       string `json:"envVar"`
}

// PVCMount mounts a volume claim.
type PVCMount struct {
	TaskOutputParameter     *TaskOutputParameter `json:"taskOutputParameter"`
	Constant                string               `json:"constant"`
	ComponentInputParameter string               `json:"componentInputParameter"`
	PVCNameParameter        *TaskParameter       `json:"pvcNameParameter"`
	MountPath               string               `json:"mountPath"`
	SubPath                 string               `json:"subPath"`
}

// NodeSelector names node labels, or a parameter that holds them.
type NodeSelector struct {
	Labels           map[string]string `json:"labels"`
	NodeSelectorJSON *TaskParameter    `json:"nodeSelectorJson"`
}

// PodMetadata holds labels and annotations.
type PodMetadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ImagePullSecret names a Secret.
type ImagePullSecret struct {
	SecretName          string         `json:"secretName"`
	SecretNameParameter *TaskParameter `json:"secretNameParameter"`
}

// FieldPathAsEnv sets an environment variable from a field of the pod.
type FieldPathAsEnv struct {
	Name      string `json:"name"`
	FieldPath string `json:"fieldPath"`
}

// Toleration of a node's taint, or a parameter that holds one or a list of them.
type Toleration struct {
	Key               string         `json:"key"`
	Operator          string         `json:"operator"`
	Value             string         `json:"value"`
	Effect            string         `json:"effect"`
	TolerationSeconds *int64         `json:"tolerationSeconds"`
	TolerationJSON    *TaskParameter `json:"tolerationJson"`
}

// SelectorRequirement is a term of an affinity.
type SelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// NodeAffinity is a term of a node affinity: preferred where it has a weight, else required.
type NodeAffinity struct {
	MatchExpressions []SelectorRequirement `json:"matchExpressions"`
	MatchFields      []SelectorRequirement `json:"matchFields"`
	Weight           *int64                `json:"weight"`
	NodeAffinityJSON *TaskParameter        `json:"nodeAffinityJson"`
}

// PodAffinity is a term of a pod (anti-)affinity.
type PodAffinity struct {
	MatchPodExpressions       []SelectorRequirement `json:"matchPodExpressions"`
	MatchPodLabels            map[string]string     `json:"matchPodLabels"`
	TopologyKey               string                `json:"topologyKey"`
	Namespaces                []string              `json:"namespaces"`
	MatchNamespaceExpressions []SelectorRequirement `json:"matchNamespaceExpressions"`
	MatchNamespaceLabels      map[string]string     `json:"matchNamespaceLabels"`
	Weight                    *int64                `json:"weight"`
	Anti                      bool                  `json:"anti"`
}

// SharedMemory asks for a volume in memory at /dev/shm.
type SharedMemory struct {
	VolumeName string `json:"volumeName"`
	Size       string `json:"size"`
}

// GenericEphemeralVolume is a volume that lives as long as the pod.
type GenericEphemeralVolume struct {
	VolumeName          string       `json:"volumeName"`
	MountPath           string       `json:"mountPath"`
	AccessModes         []string     `json:"accessModes"`
	Size                string       `json:"size"`
	DefaultStorageClass bool         `json:"defaultStorageClass"`
	StorageClassName    string       `json:"storageClassName"`
	Metadata            *PodMetadata `json:"metadata"`
}

// EmptyDirMount mounts an empty folder.
type EmptyDirMount struct {
	VolumeName string `json:"volumeName"`
	MountPath  string `json:"mountPath"`
	Medium     string `json:"medium"`
	SizeLimit  string `json:"sizeLimit"`
}

// SecurityContext says as whom the container runs.
type SecurityContext struct {
	RunAsUser    *int64 `json:"runAsUser"`
	RunAsGroup   *int64 `json:"runAsGroup"`
	RunAsNonRoot *bool  `json:"runAsNonRoot"`
}

// InitContainer runs before the task's container, or beside it where its restart policy is Always.
type InitContainer struct {
	Name          string               `json:"name"`
	Image         string               `json:"image"`
	Command       []string             `json:"command"`
	Args          []string             `json:"args"`
	Env           []EnvVar             `json:"env"`
	VolumeMounts  []InitVolumeMount    `json:"volumeMounts"`
	RestartPolicy string               `json:"restartPolicy"`
	Resources     ResourceRequirements `json:"resources"`
}

// InitVolumeMount mounts a volume in an init container.
type InitVolumeMount struct {
	VolumeName string `json:"volumeName"`
	MountPath  string `json:"mountPath"`
}

// ResourceRequirements are Kubernetes quantities by resource.
type ResourceRequirements struct {
	Requests map[string]string `json:"requests"`
	Limits   map[string]string `json:"limits"`
}
