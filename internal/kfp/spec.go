package kfp

import "strings"

// The types of this file are the PipelineSpec of schema 2.1.0, as the compiler of the kfp SDK writes it: protojson, with
// names in lowerCamelCase (names_with_underscores are read too). Absent and null mean the same, except in a Value.

// Value is a JSON value of the author's: a constant, a default, a literal. A nil *Value is absent; null is a Value.
type Value struct{ JSON any }

// PipelineSpec is a compiled pipeline.
type PipelineSpec struct {
	PipelineInfo        PipelineInfo              `json:"pipelineInfo"`
	DeploymentSpec      DeploymentSpec            `json:"deploymentSpec"`
	SchemaVersion       string                    `json:"schemaVersion"`
	SDKVersion          string                    `json:"sdkVersion"`
	DefaultPipelineRoot string                    `json:"defaultPipelineRoot"`
	Components          map[string]*ComponentSpec `json:"components"`
	Root                *ComponentSpec            `json:"root"`
}

// PipelineInfo names a pipeline.
type PipelineInfo struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

// DeploymentSpec holds the executors by label.
type DeploymentSpec struct {
	Executors map[string]*ExecutorSpec `json:"executors"`
}

// ComponentSpec is a component: a graph of tasks, or something that an executor runs.
type ComponentSpec struct {
	InputDefinitions       InputDefinitions     `json:"inputDefinitions"`
	OutputDefinitions      OutputDefinitions    `json:"outputDefinitions"`
	Dag                    *DagSpec             `json:"dag"`
	ExecutorLabel          string               `json:"executorLabel"`
	SinglePlatformSpecs    []SinglePlatformSpec `json:"singlePlatformSpecs"`
	TaskConfigPassthroughs []Passthrough        `json:"taskConfigPassthroughs"`
}

// Passthrough says that a kind of settings is given to the component's own code in its TASK_CONFIG parameter, and
// whether it is applied to the task as well.
type Passthrough struct {
	Field       string `json:"field"`
	ApplyToTask bool   `json:"applyToTask"`
}

// InputDefinitions are a component's declared inputs.
type InputDefinitions struct {
	Parameters map[string]*InputParameter `json:"parameters"`
	Artifacts  map[string]*InputArtifact  `json:"artifacts"`
}

// InputParameter declares an input parameter. Type is the deprecated form of ParameterType.
type InputParameter struct {
	ParameterType string  `json:"parameterType"`
	Type          string  `json:"type"`
	DefaultValue  *Value  `json:"defaultValue"`
	IsOptional    bool    `json:"isOptional"`
	Description   string  `json:"description"`
	Literals      []Value `json:"literals"`
}

// InputArtifact declares an input artifact, or a list of them.
type InputArtifact struct {
	ArtifactType   ArtifactType `json:"artifactType"`
	IsArtifactList bool         `json:"isArtifactList"`
	IsOptional     bool         `json:"isOptional"`
	Description    string       `json:"description"`
}

// ArtifactType names a schema.
type ArtifactType struct {
	SchemaTitle    string `json:"schemaTitle"`
	SchemaURI      string `json:"schemaUri"`
	InstanceSchema string `json:"instanceSchema"`
	SchemaVersion  string `json:"schemaVersion"`
}

// title is what [program.Artifact] calls the type.
func (t ArtifactType) title() string {
	if t.InstanceSchema != "" {
		return t.InstanceSchema
	}
	if t.SchemaTitle != "" {
		return t.SchemaTitle
	}
	return t.SchemaURI
}

// OutputDefinitions are a component's declared outputs.
type OutputDefinitions struct {
	Parameters map[string]*OutputParameter `json:"parameters"`
	Artifacts  map[string]*OutputArtifact  `json:"artifacts"`
}

// OutputParameter declares an output parameter.
type OutputParameter struct {
	ParameterType string `json:"parameterType"`
	Type          string `json:"type"`
	Description   string `json:"description"`
}

// OutputArtifact declares an output artifact.
type OutputArtifact struct {
	ArtifactType     ArtifactType              `json:"artifactType"`
	Metadata         map[string]any            `json:"metadata"`
	Properties       map[string]ValueOrRuntime `json:"properties"`
	CustomProperties map[string]ValueOrRuntime `json:"customProperties"`
	IsArtifactList   bool                      `json:"isArtifactList"`
	Description      string                    `json:"description"`
}

// DagSpec is a graph of tasks and where its outputs come from.
type DagSpec struct {
	Tasks   map[string]*TaskSpec `json:"tasks"`
	Outputs DagOutputs           `json:"outputs"`
}

// DagOutputs say which task's output is the graph's.
type DagOutputs struct {
	Artifacts  map[string]DagOutputArtifact  `json:"artifacts"`
	Parameters map[string]DagOutputParameter `json:"parameters"`
}

// DagOutputArtifact comes from the first of its selectors whose task succeeded.
type DagOutputArtifact struct {
	ArtifactSelectors []ArtifactSelector `json:"artifactSelectors"`
}

// ArtifactSelector names an output artifact of a task in the graph.
type ArtifactSelector struct {
	ProducerSubtask   string `json:"producerSubtask"`
	OutputArtifactKey string `json:"outputArtifactKey"`
}

// DagOutputParameter comes from one task, or from the first of several that succeeded.
type DagOutputParameter struct {
	ValueFromParameter *ParameterSelector  `json:"valueFromParameter"`
	ValueFromOneof     *ParameterSelectors `json:"valueFromOneof"`
}

// ParameterSelectors are alternatives.
type ParameterSelectors struct {
	ParameterSelectors []ParameterSelector `json:"parameterSelectors"`
}

// ParameterSelector names an output parameter of a task in the graph.
type ParameterSelector struct {
	ProducerSubtask    string `json:"producerSubtask"`
	OutputParameterKey string `json:"outputParameterKey"`
}

// TaskSpec is a task of a graph: a component with inputs, conditions and an order.
type TaskSpec struct {
	TaskInfo          TaskInfo           `json:"taskInfo"`
	Inputs            TaskInputs         `json:"inputs"`
	DependentTasks    []string           `json:"dependentTasks"`
	CachingOptions    CachingOptions     `json:"cachingOptions"`
	ComponentRef      ComponentRef       `json:"componentRef"`
	TriggerPolicy     TriggerPolicy      `json:"triggerPolicy"`
	ArtifactIterator  *ArtifactIterator  `json:"artifactIterator"`
	ParameterIterator *ParameterIterator `json:"parameterIterator"`
	RetryPolicy       *RetryPolicy       `json:"retryPolicy"`
	IteratorPolicy    IteratorPolicy     `json:"iteratorPolicy"`
}

// TaskInfo holds a task's name for people.
type TaskInfo struct {
	Name string `json:"name"`
}

// CachingOptions switch the reuse of earlier outputs.
type CachingOptions struct {
	EnableCache bool   `json:"enableCache"`
	CacheKey    string `json:"cacheKey"`
}

// ComponentRef names the component that a task runs.
type ComponentRef struct {
	Name string `json:"name"`
}

// TriggerPolicy says when a task runs.
type TriggerPolicy struct {
	// Condition is CEL over the task's own inputs.
	Condition string `json:"condition"`
	Strategy  string `json:"strategy"`
}

// The trigger strategies.
const (
	allSucceeded = "ALL_UPSTREAM_TASKS_SUCCEEDED"
	allCompleted = "ALL_UPSTREAM_TASKS_COMPLETED"
)

// ArtifactIterator runs a task for each artifact of a list.
type ArtifactIterator struct {
	Items     ArtifactItems `json:"items"`
	ItemInput string        `json:"itemInput"`
}

// ArtifactItems names the task's input that holds the list.
type ArtifactItems struct {
	InputArtifact string `json:"inputArtifact"`
}

// ParameterIterator runs a task for each element of a list.
type ParameterIterator struct {
	Items     ParameterItems `json:"items"`
	ItemInput string         `json:"itemInput"`
}

// ParameterItems holds the list as JSON, or names the task's input that holds it.
type ParameterItems struct {
	Raw            string `json:"raw"`
	InputParameter string `json:"inputParameter"`
}

// IteratorPolicy limits how many iterations run at once; 0 is no limit.
type IteratorPolicy struct {
	ParallelismLimit int64 `json:"parallelismLimit"`
}

// RetryPolicy says how often a failed task is tried again. Durations are protojson texts ("3600s").
type RetryPolicy struct {
	MaxRetryCount      int64   `json:"maxRetryCount"`
	BackoffDuration    string  `json:"backoffDuration"`
	BackoffFactor      float64 `json:"backoffFactor"`
	BackoffMaxDuration string  `json:"backoffMaxDuration"`
}

// TaskInputs say where a task's inputs come from.
type TaskInputs struct {
	Parameters map[string]*TaskParameter `json:"parameters"`
	Artifacts  map[string]*TaskArtifact  `json:"artifacts"`
}

// TaskParameter gives a task's input parameter: one of its kinds, and an expression over the value.
type TaskParameter struct {
	TaskOutputParameter     *TaskOutputParameter `json:"taskOutputParameter"`
	RuntimeValue            *ValueOrRuntime      `json:"runtimeValue"`
	ComponentInputParameter string               `json:"componentInputParameter"`
	TaskFinalStatus         *ProducerTask        `json:"taskFinalStatus"`
	ExpressionSelector      string               `json:"parameterExpressionSelector"`
}

// TaskOutputParameter is an output parameter of a task in the same graph.
type TaskOutputParameter struct {
	ProducerTask       string `json:"producerTask"`
	OutputParameterKey string `json:"outputParameterKey"`
}

// ProducerTask names a task in the same graph.
type ProducerTask struct {
	ProducerTask string `json:"producerTask"`
}

// TaskArtifact gives a task's input artifact.
type TaskArtifact struct {
	TaskOutputArtifact     *TaskOutputArtifact `json:"taskOutputArtifact"`
	ComponentInputArtifact string              `json:"componentInputArtifact"`
}

// TaskOutputArtifact is an output artifact of a task in the same graph.
type TaskOutputArtifact struct {
	ProducerTask      string `json:"producerTask"`
	OutputArtifactKey string `json:"outputArtifactKey"`
}

// ValueOrRuntime is a constant, or the name of an input parameter.
type ValueOrRuntime struct {
	Constant         *Value         `json:"constant"`
	ConstantValue    *ConstantValue `json:"constantValue"`
	RuntimeParameter string         `json:"runtimeParameter"`
}

// ConstantValue is the deprecated form of a constant.
type ConstantValue struct {
	IntValue    *Value `json:"intValue"`
	DoubleValue *Value `json:"doubleValue"`
	StringValue *Value `json:"stringValue"`
}

// constant gives the constant in either form, or nil.
func (v ValueOrRuntime) constant() *Value {
	if v.Constant != nil || v.ConstantValue == nil {
		return v.Constant
	}
	for _, c := range []*Value{v.ConstantValue.IntValue, v.ConstantValue.DoubleValue, v.ConstantValue.StringValue} {
		if c != nil {
			return c
		}
	}
	return nil
}

// ExecutorSpec is how a component is run: exactly one of its fields is set.
type ExecutorSpec struct {
	Container *ContainerSpec `json:"container"`
	Importer  *ImporterSpec  `json:"importer"`
	Resolver  *Value         `json:"resolver"`
	CustomJob *Value         `json:"customJob"`
}

// ContainerSpec is a command in an image; its texts may hold placeholders.
type ContainerSpec struct {
	Image     string    `json:"image"`
	Command   []string  `json:"command"`
	Args      []string  `json:"args"`
	Lifecycle *Value    `json:"lifecycle"`
	Resources Resources `json:"resources"`
	Env       []EnvVar  `json:"env"`
}

// EnvVar is an environment variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Resources of a container: Kubernetes quantities, or (deprecated) numbers of cores and of gigabytes.
type Resources struct {
	CPULimit              float64      `json:"cpuLimit"`
	MemoryLimit           float64      `json:"memoryLimit"`
	CPURequest            float64      `json:"cpuRequest"`
	MemoryRequest         float64      `json:"memoryRequest"`
	ResourceCPULimit      string       `json:"resourceCpuLimit"`
	ResourceMemoryLimit   string       `json:"resourceMemoryLimit"`
	ResourceCPURequest    string       `json:"resourceCpuRequest"`
	ResourceMemoryRequest string       `json:"resourceMemoryRequest"`
	Accelerator           *Accelerator `json:"accelerator"`
}

// Accelerator asks for devices; Count and Type are the deprecated form.
type Accelerator struct {
	Count         int64  `json:"count"`
	Type          string `json:"type"`
	ResourceCount string `json:"resourceCount"`
	ResourceType  string `json:"resourceType"`
}

// ImporterSpec records something that lies somewhere as an artifact.
type ImporterSpec struct {
	ArtifactURI         ValueOrRuntime            `json:"artifactUri"`
	TypeSchema          ArtifactType              `json:"typeSchema"`
	Properties          map[string]ValueOrRuntime `json:"properties"`
	CustomProperties    map[string]ValueOrRuntime `json:"customProperties"`
	Metadata            map[string]any            `json:"metadata"`
	Reimport            bool                      `json:"reimport"`
	DownloadToWorkspace bool                      `json:"downloadToWorkspace"`
}

// parameterTypes are the known parameter types, and the deprecated names with what they are now.
var parameterTypes = map[string]string{
	"NUMBER_DOUBLE": "NUMBER_DOUBLE", "NUMBER_INTEGER": "NUMBER_INTEGER", "STRING": "STRING", "BOOLEAN": "BOOLEAN",
	"LIST": "LIST", "STRUCT": "STRUCT", "TASK_FINAL_STATUS": "TASK_FINAL_STATUS", "TASK_CONFIG": "TASK_CONFIG",
	"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE",
}

// parameterType gives the type of a parameter from its current and its deprecated field; "" where it names none.
func parameterType(current, deprecated string) string {
	if current == "" {
		current = deprecated
	}
	return parameterTypes[strings.TrimSpace(current)]
}
