package program

// Kind says what sort of work a task is.
type Kind string

// The kinds of tasks.
const (
	// Containers is one container (Argo's container, KFP's container) or several in one pod (Argo's containerSet).
	Containers Kind = "containers"
	// Script is a container whose source is handed to its command as a file.
	Script Kind = "script"
	// HTTP is one request, done by the runner.
	HTTP Kind = "http"
	// Data lists and transforms artifact paths, done by the runner.
	Data Kind = "data"
	// Plugin is work that a hook plugin does: its Pre hook answers with the outputs.
	Plugin Kind = "plugin"
	// Resource acts on a Kubernetes object.
	Resource Kind = "resource"
	// Importer records an artifact that lies somewhere as an output.
	Importer Kind = "importer"
)

// Body is the work of a task. Every string in it may hold placeholders; the engine resolves them after the Pre hooks.
type Body struct {
	Kind       Kind        `json:"kind"`
	Containers []Container `json:"containers,omitempty"`
	Script     string      `json:"script,omitempty"`
	Volumes    []Volume    `json:"volumes,omitempty"`
	Request    *Request    `json:"request,omitempty"`
	// Data, Plugin and Resource carry the author's block, strings with placeholders.
	Data     JSON `json:"data,omitempty"`
	Plugin   JSON `json:"plugin,omitempty"`
	Resource JSON `json:"resource,omitempty"`
	// Source is where the paths lie that Data lists: an artifact's location.
	Source *Binding `json:"source,omitempty"`
	// Import is what an Importer records.
	Import *Import `json:"import,omitempty"`
	// Result asks that standard output be kept as the task's result (outputs.result).
	Result bool `json:"result,omitempty"`
	// ExecutorOutput is the path of KFP's output metadata file, when the task may write one.
	ExecutorOutput string `json:"executorOutput,omitempty"`
	// Requirements are the Python packages that the task installs before it runs; a backend that can provides an
	// environment that has them and then runs PythonCommand instead of the first container's command. They are the
	// arguments of "pip install", options included; [InstallSeparator] stands between one installation and the next.
	Requirements  []string `json:"requirements,omitempty"`
	PythonCommand []string `json:"pythonCommand,omitempty"`
	// Pod holds the pod-level settings of the template in Kubernetes' own JSON, and Patch a pod spec patch.
	Pod   JSON   `json:"pod,omitempty"`
	Patch string `json:"patch,omitempty"`
}

// InstallSeparator stands in [Body.Requirements] between the arguments of one "pip install" and the next: an option such as
// --no-deps is about its own installation only.
const InstallSeparator = "&&"

// Container is a command in an image.
type Container struct {
	Name       string   `json:"name"`
	Image      string   `json:"image,omitempty"`
	Command    []string `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Env        []EnvVar `json:"env,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	// Needs names containers of the same task that must have succeeded before this one starts.
	Needs []string `json:"needs,omitempty"`
	// CPULimit and MemoryLimit as Kubernetes quantities; local backends enforce them only when asked.
	CPULimit    string `json:"cpuLimit,omitempty"`
	MemoryLimit string `json:"memoryLimit,omitempty"`
	// Retries is how often the container is started again in the same pod (containerSet), RetryDelay between them.
	Retries    string `json:"retries,omitempty"`
	RetryDelay string `json:"retryDelay,omitempty"`
	// Raw is the whole container in Kubernetes' own JSON, for the kube backend.
	Raw JSON `json:"raw,omitempty"`
}

// EnvVar is an environment variable: a literal value, or a key of a Secret or ConfigMap, or a field of the pod.
type EnvVar struct {
	Name      string `json:"name"`
	Value     string `json:"value,omitempty"`
	Secret    string `json:"secret,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	Key       string `json:"key,omitempty"`
	Field     string `json:"field,omitempty"`
	Optional  bool   `json:"optional,omitempty"`
}

// Volume is a folder that containers of the task mount.
type Volume struct {
	Name string `json:"name"`
	// Kind is emptyDir, configMap, secret, claim or other; Source is the object's name.
	Kind   string `json:"kind"`
	Source string `json:"source,omitempty"`
	// Items maps keys of a ConfigMap or Secret to file names; empty is all.
	Items    map[string]string `json:"items,omitempty"`
	Optional bool              `json:"optional,omitempty"`
}

// Mount places a volume in a container.
type Mount struct {
	Volume   string `json:"volume"`
	Path     string `json:"path"`
	SubPath  string `json:"subPath,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Request is an HTTP request and when its answer is a success.
type Request struct {
	Method             string   `json:"method,omitempty"`
	URL                string   `json:"url"`
	Headers            []EnvVar `json:"headers,omitempty"`
	Body               string   `json:"body,omitempty"`
	BodyBytes          []byte   `json:"bodyBytes,omitempty"`
	TimeoutSeconds     int64    `json:"timeoutSeconds,omitempty"`
	SuccessCondition   string   `json:"successCondition,omitempty"`
	InsecureSkipVerify bool     `json:"insecureSkipVerify,omitempty"`
}

// Import describes the artifact that an Importer records.
type Import struct {
	URI      Binding        `json:"uri"`
	Type     string         `json:"type,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Reimport bool           `json:"reimport,omitempty"`
	Output   string         `json:"output"`
}
