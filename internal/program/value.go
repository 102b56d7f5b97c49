package program

import "encoding/json"

// JSON is a piece of JSON that this package carries without looking inside.
type JSON = json.RawMessage

// Inputs are what a template declares that it takes.
type Inputs struct {
	Parameters []Input         `json:"parameters,omitempty"`
	Artifacts  []InputArtifact `json:"artifacts,omitempty"`
}

// Outputs are what a template declares that it gives.
type Outputs struct {
	Parameters []Output         `json:"parameters,omitempty"`
	Artifacts  []OutputArtifact `json:"artifacts,omitempty"`
}

// Arguments are the values that a call gives to its template's inputs.
type Arguments struct {
	Parameters []Argument `json:"parameters,omitempty"`
	Artifacts  []Argument `json:"artifacts,omitempty"`
}

// Argument is one named value of a call.
type Argument struct {
	Name string  `json:"name"`
	From Binding `json:"from"`
}

// Type is the type of a parameter's value. The zero value takes anything (Argo's parameters are texts).
type Type string

// The types of parameters, KFP's ParameterType without its prefix.
const (
	Any     Type = ""
	String  Type = "STRING"
	Integer Type = "NUMBER_INTEGER"
	Double  Type = "NUMBER_DOUBLE"
	Boolean Type = "BOOLEAN"
	List    Type = "LIST"
	Struct  Type = "STRUCT"
	// FinalStatus is filled by the system with how an upstream task ended (KFP's TASK_FINAL_STATUS).
	FinalStatus Type = "TASK_FINAL_STATUS"
	// Config is filled by the system with settings passed through to the task's own code (KFP's TASK_CONFIG).
	Config Type = "TASK_CONFIG"
)

// Input declares an input parameter.
type Input struct {
	Name string `json:"name"`
	Type Type   `json:"type,omitempty"`
	// Default is used when a call gives no value.
	Default *Binding `json:"default,omitempty"`
	// Value overrides what a call gives only where it gives nothing; Argo's inputs.parameters[].value. It may read other inputs.
	Value *Binding `json:"value,omitempty"`
	// Allowed lists the only values that are accepted (Argo's enum, KFP's literals); empty is all.
	Allowed []any `json:"allowed,omitempty"`
	// Optional inputs may stay without a value.
	Optional    bool   `json:"optional,omitempty"`
	Description string `json:"description,omitempty"`
	// GlobalName is unused for inputs of tasks; workflow parameters have none.
	GlobalName string `json:"globalName,omitempty"`
}

// InputArtifact declares an input artifact.
type InputArtifact struct {
	Name string `json:"name"`
	// Type is the schema title ("system.Dataset"); empty takes anything. List takes several artifacts.
	Type string `json:"type,omitempty"`
	List bool   `json:"list,omitempty"`
	// Path is where the task finds it; may hold placeholders.
	Path     string `json:"path,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// Mode, when not nil, is the permission bits to set; Recurse sets them on all that is inside.
	Mode    *int32 `json:"mode,omitempty"`
	Recurse bool   `json:"recurse,omitempty"`
	// Archive is how the bytes are packed where they lie: "", "tar", "zip", "none"; empty is to look at them.
	Archive string `json:"archive,omitempty"`
	// Default is used when a call gives none: the template's own location.
	Default *Binding `json:"default,omitempty"`
}

// Output declares an output parameter. Of a task it is read from Path (or supplied by who resumes it); of a graph it
// comes From its calls.
type Output struct {
	Name       string   `json:"name"`
	Type       Type     `json:"type,omitempty"`
	Path       string   `json:"path,omitempty"`
	Supplied   bool     `json:"supplied,omitempty"`
	JSONPath   string   `json:"jsonPath,omitempty"`
	JQFilter   string   `json:"jqFilter,omitempty"`
	From       *Binding `json:"from,omitempty"`
	Default    *Binding `json:"default,omitempty"`
	GlobalName string   `json:"globalName,omitempty"`
	// Optional outputs may stay without a value where what gives them was skipped.
	Optional bool `json:"optional,omitempty"`
}

// OutputArtifact declares an output artifact.
type OutputArtifact struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	List bool   `json:"list,omitempty"`
	// Path is where the task leaves it; may hold placeholders.
	Path     string `json:"path,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// Metadata that the author declared; what the task reports is merged over it.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Archive is "tar" (default), "zip" or "none".
	Archive    string `json:"archive,omitempty"`
	GlobalName string `json:"globalName,omitempty"`
	// Location is where the author wants it stored: a store block (see [Artifact.Store]) that may hold placeholders.
	Location JSON `json:"location,omitempty"`
	// From is set for a graph.
	From *Binding `json:"from,omitempty"`
	// KeyFrom and MetadataFrom are files of the task that hold a location, or an artifact's JSON, instead of bytes:
	// nothing is uploaded.
	KeyFrom      string `json:"keyFrom,omitempty"`
	MetadataFrom string `json:"metadataFrom,omitempty"`
}

// Binding says where a value comes from. Exactly one of Const, Text, Ref, Expr, OneOf, ConfigMap, Location and Metadata
// is set; Select and Default refine it.
type Binding struct {
	// Const is a literal JSON value, null included.
	Const JSON `json:"const,omitempty"`
	// Text may hold placeholders and yields a string. It is a pointer because an empty text is a value.
	Text *string `json:"text,omitempty"`
	// Ref is a path in the scope: "tasks.a.outputs.parameters.x"; it yields a typed value. It may hold placeholders.
	Ref string `json:"ref,omitempty"`
	// Expr is an expression of the language; it yields a typed value.
	Expr string `json:"expr,omitempty"`
	// OneOf yields the first that has a value.
	OneOf []Binding `json:"oneOf,omitempty"`
	// ConfigMap yields a text from [Program.ConfigMaps].
	ConfigMap *ConfigMapKey `json:"configMap,omitempty"`
	// Location yields an artifact that lies somewhere: a store block whose strings may hold placeholders.
	Location JSON `json:"location,omitempty"`
	// Metadata yields an artifact from its JSON description, a text with placeholders (fromMetadata).
	Metadata *string `json:"metadata,omitempty"`
	// Supplied yields what the person who resumes the task gives.
	Supplied bool `json:"supplied,omitempty"`

	// Select is an expression over the value (KFP's parameterExpressionSelector).
	Select string `json:"select,omitempty"`
	// SubPath of an artifact; may hold placeholders.
	SubPath string `json:"subPath,omitempty"`
	// Default is used where there is no value.
	Default *Binding `json:"default,omitempty"`
}

// ConfigMapKey names a key of a ConfigMap; both may hold placeholders.
type ConfigMapKey struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional,omitempty"`
}

// Artifact is an artifact's description, apart from its bytes.
type Artifact struct {
	Name string `json:"name,omitempty"`
	// URI says where the bytes are; for people and for metadata. Store says how to get at them.
	URI string `json:"uri,omitempty"`
	// Type is the schema title ("system.Model"), or an instance schema; TypeVersion its version.
	Type        string         `json:"type,omitempty"`
	TypeVersion string         `json:"typeVersion,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	// Store is a store block, {"s3": {...}} with one key, in the form of Argo's ArtifactLocation; ours besides Argo's:
	// {"folder": {"path": ...}}. Nil for an artifact that is only a URI.
	Store JSON `json:"store,omitempty"`
	// SubPath narrows to something inside; Archive ("tar", "zip", "none") is how it is packed.
	SubPath string `json:"subPath,omitempty"`
	Archive string `json:"archive,omitempty"`
	// CustomPath is where the task that made it kept it (KFP's custom_path).
	CustomPath string `json:"customPath,omitempty"`
	// Digest ("sha256:...") and Size in bytes are known after an upload.
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
}
